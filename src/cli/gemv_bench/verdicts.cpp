// src/cli/gemv_bench/verdicts.cpp - what a run says of the claims
#include <algorithm>
#include <cmath>

#include "cli/gemv_bench/results.hpp"
#include "cli/output/gemv_report.hpp"
#include "ptxgen/kernels/gemv/models.hpp"
#include "support/count.hpp"

namespace ptxgen::cli {

namespace {

using Says = Verdict::Says;

constexpr std::uint64_t kMegabyte = 1'000'000;

std::string number(double value, int digits = 2) { return fixed(value, digits); }

std::string name_of(const ShapeResult& shape) { return to_text(shape.problem); }

// The verdicts in their order, made from one run.
class Judge {
 public:
  explicit Judge(const BenchRun& run) : run_(run) {}

  [[nodiscard]] std::vector<Verdict> all() {
    elementary();
    hypotheses();
    goals();
    if (run_.machine.emulated) {
      for (Row& row : verdicts_) {
        if (!row.counted) withdraw(row.verdict);
      }
    }
    std::vector<Verdict> done;
    for (Row& row : verdicts_) done.push_back(std::move(row.verdict));
    return done;
  }

 private:
  struct Row {
    Verdict verdict;
    bool counted = false;  // from counts, not times
  };
  static void withdraw(Verdict& verdict) {
    if (verdict.says == Says::NotApplicable) return;
    verdict.says = Says::NotApplicable;
    verdict.measured = "the emulator's times say nothing about a GPU";
  }

  void add(std::string id, std::string claim, bool pass, std::string measured) {
    verdicts_.push_back(
        {{std::move(id), std::move(claim), pass ? Says::Pass : Says::Fail, std::move(measured)}});
  }
  void skip(std::string id, std::string claim, std::string why) {
    verdicts_.push_back({{std::move(id), std::move(claim), Says::NotApplicable, std::move(why)}});
  }
  // A figure of one arm that must lie below a bound, or was not measured.
  void below(const std::string& id, const std::string& claim, double us, double bound) {
    if (us == 0) return skip(id, claim, "not measured");
    add(id, claim, us < bound, number(us) + " us");
  }
  [[nodiscard]] const ShapeResult* square(std::uint32_t size) const {
    return run_.find(GemvLayout::T, GemvType::f32, size, size);
  }
  [[nodiscard]] double planned(std::uint32_t size, Metric metric) const {
    const ShapeResult* const shape = square(size);
    return shape == nullptr ? 0 : shape->median("planned", metric);
  }
  // planned / other arm for the f32 4096 square, layout T; 0 if one is missing.
  [[nodiscard]] double ratio(std::string_view above, std::string_view under, Metric metric) const {
    const ShapeResult* const shape = square(4096);
    if (shape == nullptr) return 0;
    const double under_us = shape->median(under, metric);
    return under_us == 0 ? 0 : shape->median(above, metric) / under_us;
  }

  void elementary();
  void hypotheses();
  void goals();
  void cublas_goals();
  void layout_goal();
  void prediction_goal();
  void token_rate();
  void loads_are_wanted(const std::string& id, const std::string& claim);

  const BenchRun& run_;
  std::vector<Row> verdicts_;
};

// The smallest or largest figure of several, with the shape it belongs to.
struct Extreme {
  double value = 0;
  std::string where;
  std::size_t count = 0;
  void least(double figure, const std::string& shape) {
    if (count++ == 0 || figure < value) value = figure, where = shape;
  }
  void most(double figure, const std::string& shape) {
    if (count++ == 0 || figure > value) value = figure, where = shape;
  }
};

void Judge::loads_are_wanted(const std::string& id, const std::string& claim) {
  Extreme worst;
  for (const ShapeResult& shape : run_.shapes) {
    const ArmResult* const arm = shape.find("planned");
    if (arm == nullptr || !arm->arm.prediction) continue;
    // Sectors of 32 bytes can only all be wanted where rows are made of whole ones.
    const GemvProblem& problem = shape.problem;
    if (problem.leading_dimension() * bytes(problem.weights) % 32 != 0) continue;
    const double wanted = static_cast<double>(problem.k) * problem.n * bytes(problem.weights);
    const auto moved = static_cast<double>(arm->arm.prediction->weight_sectors * 32);
    if (moved > 0) worst.least(wanted / moved, name_of(shape));
  }
  if (worst.count == 0) return skip(id, claim, "no aligned shape was planned");
  add(id, claim, worst.value >= 0.9,
      number(100 * worst.value) + " % at least, " + worst.where + " (counted)");
  verdicts_.back().counted = true;
}

void Judge::token_rate() {
  const std::string claim = "E7: GEMVs of a Llama-2-7B token, unfused, chained: > 50 tokens/s";
  const DecoderModel* const model = find_decoder_model("llama-2-7b");
  Extreme best;
  for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
    for (const GemvType type : {GemvType::f32, GemvType::f16, GemvType::bf16}) {
      double us = 0;
      bool all = model != nullptr;
      if (all) {
        for (const DecodeShape& one : decode_shapes(*model, false)) {
          const ShapeResult* const shape = run_.find(layout, type, one.k, one.n);
          const double each = shape == nullptr ? 0 : shape->median("planned", Metric::Chained);
          all = all && each > 0;
          us += each * one.count;
        }
      }
      if (all) {
        best.least(1e6 / us, std::string(to_string(layout)) + " " + std::string(to_string(type)));
      }
    }
  }
  if (best.count == 0) return skip("E7", claim.substr(4), "not all of its shapes were measured");
  add("E7", claim.substr(4), best.value > 50,
      number(best.value, 1) + " tokens/s, " + best.where + " (the slowest of " +
          std::to_string(best.count) + ")");
}

void Judge::elementary() {
  below("E1", "4096 x 4096 f32 isolated: < 100 us", planned(4096, Metric::Isolated), 100);
  below("E2", "2048 x 2048 f32 isolated: < 30 us", planned(2048, Metric::Isolated), 30);
  below("E3", "8192 x 8192 f32 isolated: < 300 us", planned(8192, Metric::Isolated), 300);
  const double in_stream = planned(4096, Metric::Stream);
  const std::string rate = "4096 x 4096 f32, launched from the host: > 10000 products/s";
  if (in_stream == 0) {
    skip("E4", rate, "not measured: --stream");
  } else {
    add("E4", rate, 1e6 / in_stream > 10000, number(1e6 / in_stream, 0) + " products/s");
  }
  const std::string share = "4096 x 4096 f32 isolated: >= 79 % of the datasheet's bandwidth";
  const double isolated = planned(4096, Metric::Isolated);
  if (isolated == 0 || run_.machine.datasheet_gb_per_s <= 0) {
    skip("E5", share, isolated == 0 ? "not measured" : "the datasheet's bandwidth is not known");
  } else {
    const double gb = static_cast<double>(square(4096)->bytes()) / isolated * 1e-3;
    const double part = gb / run_.machine.datasheet_gb_per_s;
    add("E5", share, part >= 0.79,
        number(100 * part, 1) + " % (" + number(gb, 0) +
            " GB/s by time; the DRAM counter is ncu's)");
  }
  loads_are_wanted("E6", "aligned weights: > 90 % of the bytes loaded are wanted");
  token_rate();
  const std::string tenfold = "4096 x 4096 f32 isolated: >= 10 times the strided baseline";
  const double speedup = ratio("strided", "planned", Metric::Isolated);
  if (speedup == 0) {
    skip("E8", tenfold, "not measured: --with strided");
  } else {
    add("E8", tenfold, speedup >= 10,
        number(speedup, 1) + " times, base " +
            number(square(4096)->median("strided", Metric::Isolated)) + " us");
  }
  const std::string near = "every shape: within 1.5 times the best of cuBLAS";
  Extreme slowest;
  for (const ShapeResult& shape : run_.shapes) {
    for (const Metric metric : {Metric::Isolated, Metric::Chained}) {
      const double ours = shape.median("planned", metric);
      const double theirs = shape.best_cublas(metric);
      if (ours > 0 && theirs > 0) {
        slowest.most(ours / theirs, name_of(shape) + ", " + std::string(to_string(metric)));
      }
    }
  }
  if (slowest.count == 0) {
    skip("E9", near, "cuBLAS was not measured");
  } else {
    add("E9", near, slowest.value <= 1.5,
        number(slowest.value) + " times at most, " + slowest.where);
  }
  skip("E10", "no shared bank conflicts", "counted by ncu, and by `ptxgen gemv` on the emulator");
  skip("E11", "L2 hit rate of cold weights < 15 %, DRAM bytes <= 1.05 of what is wanted",
       "counted by ncu");
  skip("E12", "warp execution efficiency > 90 %",
       "counted by ncu, and by `ptxgen gemv` on the emulator");
}

void Judge::hypotheses() {
  loads_are_wanted("H1a", "coalescing: >= 90 % of the bytes loaded are wanted");
  const std::string cold = "4096 x 4096 f32 cold, chained: >= 90 % of the read-only roofline";
  const double share = ratio("roofline", "planned", Metric::Chained);
  if (share == 0) {
    skip("H1b", cold, "not measured: --with roofline");
  } else {
    add("H1b", cold, share >= 0.9, number(100 * share, 1) + " %");
  }
  const std::string bounded = "4096 x 4096 f32 isolated: <= 1.15 * bytes / copy rate + 3.5 us";
  const Ceiling* const copy = run_.ceiling("copy");
  const double isolated = planned(4096, Metric::Isolated);
  bool within = false;
  if (copy == nullptr || isolated == 0) {
    skip("H2", bounded, "not measured");
  } else {
    const double bytes = static_cast<double>(square(4096)->bytes());
    const double bound = 1.15 * bytes / copy->gb_per_s() * 1e-3 + 3.5;
    within = isolated <= bound;
    add("H2", bounded, within, number(isolated) + " us of at most " + number(bound) + " us");
  }
  const std::string rate = "> 10000 products/s of 4096 x 4096 f32, and H2";
  const double in_stream = planned(4096, Metric::Stream);
  if (in_stream == 0 || copy == nullptr || isolated == 0) {
    skip("H3", rate, "not measured");
  } else {
    add("H3", rate, 1e6 / in_stream > 10000 && within, number(1e6 / in_stream, 0) + " products/s");
  }
  const std::string wide =
      "loads of 16 bytes against 4: > 1.5 times starved, 0.97 to 1.3 times full";
  const double starved = ratio("starved-4", "starved-16", Metric::Chained);
  const double full = ratio("full-4", "full-16", Metric::Chained);
  if (starved == 0 || full == 0) {
    skip("H4", wide, "not measured: --with variants");
  } else {
    add("H4", wide, starved > 1.5 && full >= 0.97 && full <= 1.3,
        number(starved) + " times starved, " + number(full) + " times full");
  }
  const std::string blocks =
      "blocks of 1024 against 256 threads, equal bytes in flight: < 1.2 times";
  const double threads = ratio("threads-1024", "threads-256", Metric::Chained);
  if (threads == 0) {
    skip("H5", blocks, "not measured: --with variants");
  } else {
    const double apart = std::max(threads, 1 / threads);
    add("H5", blocks, apart < 1.2, number(apart) + " times");
  }
}

void Judge::goals() {
  const std::string most =
      "matrices of 256 MB and more, chained: >= 98 % of the read-only roofline";
  Extreme large;
  for (const ShapeResult& shape : run_.shapes) {
    if (shape.bytes() < 256 * kMegabyte) continue;
    const double ours = shape.median("planned", Metric::Chained);
    const double limit = shape.median("roofline", Metric::Chained);
    if (ours > 0 && limit > 0) large.least(limit / ours, name_of(shape));
  }
  if (large.count == 0) {
    skip("P1", most, "not measured");
  } else {
    add("P1", most, large.value >= 0.98,
        number(100 * large.value, 1) + " % at least, " + large.where);
  }
  const auto pair = [&](const char* id, std::uint32_t size, double isolated, double chained) {
    const std::string claim = std::to_string(size) + " x " + std::to_string(size) +
                              " f32 (goal for an H200): isolated <= " + number(isolated, 1) +
                              " us, chained <= " + number(chained, 1) + " us";
    const double one = planned(size, Metric::Isolated);
    const double many = planned(size, Metric::Chained);
    if (one == 0 || many == 0) return skip(id, claim, "not measured");
    if (run_.machine.gpu.find("H200") == std::string::npos) {
      return skip(id, claim, number(one) + " us, " + number(many) + " us; this is no H200");
    }
    add(id, claim, one <= isolated && many <= chained,
        number(one) + " us, " + number(many) + " us");
  };
  pair("P2", 4096, 18, 16);
  pair("P3", 2048, 6, 4.3);
  cublas_goals();
  layout_goal();
  const std::string fixed = "sums in a fixed order against atomics (both NVRTC): <= 2 % more time";
  Extreme cost;
  for (const ShapeResult& shape : run_.shapes) {
    const double atomic = shape.median("nvrtc-atomic", Metric::Chained);
    const double ordered = shape.median("nvrtc", Metric::Chained);
    if (atomic > 0 && ordered > 0) cost.most(ordered / atomic, name_of(shape));
  }
  if (cost.count == 0) {
    skip("P8", fixed, "no split plan was measured with atomics: --with nvrtc");
  } else {
    add("P8", fixed, cost.value <= 1.02,
        number(100 * (cost.value - 1), 1) + " % at most, " + cost.where);
  }
  prediction_goal();
}

void Judge::cublas_goals() {
  Extreme least;
  Extreme small;
  std::vector<double> gains;
  for (const ShapeResult& shape : run_.shapes) {
    const double ours = shape.median("planned", Metric::Chained);
    const double theirs = shape.best_cublas(Metric::Chained);
    if (ours == 0 || theirs == 0) continue;
    gains.push_back(theirs / ours);
    least.least(theirs / ours, name_of(shape));
    if (shape.bytes() <= 8 * kMegabyte) small.least(theirs / ours, name_of(shape));
  }
  const char* const never = "never slower than the best of cuBLAS, chained";
  const char* const median = "median of best cuBLAS / planned, chained: >= 1.25";
  const char* const twice = "matrices up to 8 MB, chained: >= 2 times the best of cuBLAS";
  if (gains.empty()) {
    skip("P4a", never, "cuBLAS was not measured");
    skip("P4b", median, "cuBLAS was not measured");
    return skip("P4c", twice, "cuBLAS was not measured");
  }
  add("P4a", never, least.value >= 1, number(least.value) + " times at least, " + least.where);
  const double middle = statistics_of(gains).median;
  add("P4b", median, middle >= 1.25,
      number(middle) + " over " + count_text(gains.size(), "problem"));
  if (small.count == 0) {
    skip("P4c", twice, "no such matrix was measured");
  } else {
    add("P4c", twice, small.value >= 2, number(small.value) + " times at least, " + small.where);
  }
}

void Judge::layout_goal() {
  const std::string claim = "layout T within 3 % of layout R, chained";
  Extreme apart;
  for (const ShapeResult& shape : run_.shapes) {
    const GemvProblem& problem = shape.problem;
    if (problem.layout != GemvLayout::T) continue;
    const ShapeResult* const other =
        run_.find(GemvLayout::R, problem.weights, problem.k, problem.n);
    if (other == nullptr) continue;
    const double columns = shape.median("planned", Metric::Chained);
    const double rows = other->median("planned", Metric::Chained);
    if (columns > 0 && rows > 0) apart.most(columns / rows, name_of(shape));
  }
  if (apart.count == 0) return skip("P5", claim, "no shape was measured in both layouts");
  add("P5", claim, apart.value <= 1.03,
      number(100 * (apart.value - 1), 1) + " % slower at most, " + apart.where);
}

void Judge::prediction_goal() {
  const std::string claim = "matrices above 64 MB: predicted within 7 % of measured";
  Extreme off;
  for (const ShapeResult& shape : run_.shapes) {
    const ArmResult* const arm = shape.find("planned");
    if (shape.bytes() <= 64 * kMegabyte || arm == nullptr || !arm->arm.prediction) continue;
    const auto look = [&](Metric metric, double predicted) {
      const double us = shape.median("planned", metric);
      if (us > 0) {
        off.most(std::abs(predicted / us - 1),
                 name_of(shape) + ", " + std::string(to_string(metric)));
      }
    };
    look(Metric::Isolated, arm->arm.prediction->isolated_us);
    look(Metric::Chained, arm->arm.prediction->chained_us);
  }
  if (off.count == 0) return skip("P16", claim, "not measured");
  add("P16", claim, off.value <= 0.07, number(100 * off.value, 1) + " % off at most, " + off.where);
}

}  // namespace

std::vector<Verdict> verdicts_of(const BenchRun& run) { return Judge(run).all(); }

}  // namespace ptxgen::cli
