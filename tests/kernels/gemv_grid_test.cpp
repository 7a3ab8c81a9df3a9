// tests/kernels/gemv_grid_test.cpp - the GEMV family on a grid of problems and plans
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "gemv_grid_run.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

constexpr int kEveryDay = 500;
constexpr int kFull = 6000;
constexpr std::size_t kFewOutputs = 8;

/// The worst that was met, with the point where.
struct Worst {
  double value = 0;
  std::string where;
  void see(double candidate, const GemvCase& point) {
    if (candidate <= value) return;
    value = candidate;
    where = to_text(point);
  }
};

struct Figures {
  std::size_t launches = 0;
  std::size_t outputs = 0;
  Worst of_bound;  ///< error divided by its bound
  Worst nmse;
  Worst split_nmse;        ///< of split plans with enough outputs for a mean
  double few_squares = 0;  ///< of products with few outputs, all together
  double few_errors = 0;
};

/// The library's reference says the same as ours, in another order of summation.
void check_reference(const GemvProblem& problem, const GemvData& data, const GemvExact& exact) {
  GemvInputs inputs{data.a, data.x, {}, {}, {}, data.alpha, data.beta};
  if (problem.scaled) inputs.y = data.y;
  if (problem.bias) inputs.bias = data.bias;
  if (problem.residual) inputs.residual = data.residual;
  const GemvReference reference = gemv_reference(problem, inputs);
  double worst = 0;
  for (std::size_t j = 0; j < problem.n; ++j) {
    const double scale = exact.magnitude[j] + 0x1p-1000;
    worst = std::max(worst, std::abs(reference.y[j] - exact.y[j]) / scale);
    worst = std::max(worst, std::abs(reference.magnitude[j] - exact.magnitude[j]) / scale);
  }
  CHECK(worst < 1e-12);
}

/// f32 results against fp64: each within its bound, all together within the NMSE.
void check_exact(const GemvCase& point, const GemvData& data, const std::vector<float>& y,
                 Figures& figures) {
  const GemvExact exact = exact_gemv(point.plan.problem, data);
  check_reference(point.plan.problem, data, exact);
  double squares = 0;
  double errors = 0;
  for (std::size_t j = 0; j < y.size(); ++j) {
    const double error = std::abs(double{y[j]} - exact.y[j]);
    const double bound = gemv_error_bound(exact.magnitude[j], point.plan.roundings());
    if (!(error <= bound)) {
      INFO("y[" << j << "] is " << y[j] << ", exactly " << exact.y[j] << ", bound " << bound);
      FAIL_CHECK("beyond the error bound");
      return;
    }
    if (bound > 0) figures.of_bound.see(error / bound, point);
    squares += exact.y[j] * exact.y[j];
    errors += error * error;
  }
  figures.outputs += y.size();
  // One sum may cancel: of few outputs no quotient says anything, of all such products together
  // one.
  if (y.size() < kFewOutputs) {
    figures.few_squares += squares;
    figures.few_errors += errors;
    return;
  }
  const double nmse = squares > 0 ? errors / squares : errors;
  figures.nmse.see(nmse, point);
  CHECK(nmse <= 1e-10);
  if (point.plan.is_split() && y.size() >= 32) {
    figures.split_nmse.see(nmse, point);
    CHECK(nmse <= 1e-12);
  }
}

void check_point(const GemvCase& point, Figures& figures) {
  INFO(to_text(point));
  const GemvProblem& problem = point.plan.problem;
  const GemvData data = make_data(point);
  GemvRunner runner(point, data);
  const GemvOutcome first = runner.run();
  CHECK(first.findings == "");
  // Again in the same workspace, in another order, on several threads.
  emulator::Options other;
  other.seed = point.seed + 1;
  other.threads = 2;
  other.parallel = point.seed % 2 == 0;
  const GemvOutcome second = runner.run(other);
  CHECK(second.findings == "");
  CHECK((second.y == first.y));
  figures.launches += 2;
  const bool plain =
      problem.y == ElementType::f32 && !problem.scaled && !problem.bias && !problem.residual;
  if (problem.y == ElementType::f32) check_exact(point, data, first.floats(), figures);
  if (plain) return;
  // The sums by themselves: the epilogue and the rounding follow from them bit for bit.
  const GemvCase sums_only = bare(point);
  INFO("without epilogue: " << to_text(sums_only));
  const GemvOutcome sums = GemvRunner(sums_only, data).run();
  CHECK(sums.findings == "");
  ++figures.launches;
  check_exact(sums_only, data, sums.floats(), figures);
  const std::vector<std::byte> expected = epilogue(problem, data, sums.floats());
  CHECK((first.y == expected));
}

}  // namespace

TEST_CASE("the grid: every output within its bound, silent, the same bits again") {
  const std::vector<GemvCase> grid = gemv_grid(static_cast<std::size_t>(count(kEveryDay, kFull)));
  Figures figures;
  for (const GemvCase& point : grid) {
    try {
      check_point(point, figures);
    } catch (const Error& error) {
      FAIL_CHECK(to_text(point) << ": " << error.what());
    }
  }
  std::printf(
      "gemv grid: %zu pairs, %zu launches, %zu outputs compared with fp64\n"
      "  worst error over its bound %.4f (%s)\n  worst NMSE %.3g (%s)\n"
      "  worst NMSE of split plans with 32 outputs or more %.3g (%s)\n"
      "  NMSE of all products with fewer than %zu outputs together %.3g\n",
      grid.size(), figures.launches, figures.outputs, figures.of_bound.value,
      figures.of_bound.where.c_str(), figures.nmse.value, figures.nmse.where.c_str(),
      figures.split_nmse.value, figures.split_nmse.where.c_str(), kFewOutputs,
      figures.few_errors / figures.few_squares);
  CHECK(figures.few_errors <= 1e-10 * figures.few_squares);
  CHECK(grid.size() >= 300);
  CHECK(figures.outputs > 20 * grid.size());
  // A bound that is never neared would be no bound.
  CHECK(figures.of_bound.value > 0.05);
}

TEST_CASE("the grid holds what it is for") {
  const std::vector<GemvCase> grid = gemv_grid(static_cast<std::size_t>(count(kEveryDay, kFull)));
  std::map<std::string, std::size_t> seen;
  std::set<std::uint64_t> splits;
  for (const GemvCase& point : grid) {
    const GemvPlan& plan = point.plan;
    const GemvProblem& problem = plan.problem;
    const std::string layout{to_string(problem.layout)};
    ++seen["layout " + layout];
    ++seen["type " + layout + " " + std::string(to_string(problem.weights)) + " x " +
           (problem.x == problem.weights ? "same" : "f32") + " y " +
           (problem.y == problem.weights ? "same" : "f32")];
    ++seen["path " + std::string(to_string(plan.path)) + " " + layout];
    ++seen["load " + std::to_string(plan.load_bytes)];
    ++seen["epilogue " + std::to_string(problem.scaled) + std::to_string(problem.bias) +
           std::to_string(problem.residual)];
    if (problem.k == 1) ++seen["k 1"];
    if (problem.n == 1) ++seen["n 1"];
    if (problem.k == 0) ++seen["k 0"];
    if (problem.k % 2 == 1 && problem.n % 2 == 1) ++seen["odd"];
    if (problem.lda != 0) ++seen["lda"];
    for (const std::uint32_t offset : {point.a_offset, point.x_offset, point.y_offset}) {
      if (offset != 0) ++seen["offset " + std::to_string(offset)];
    }
    if (plan.cluster > 1) ++seen["cluster"];
    if (plan.programmatic) ++seen["programmatic"];
    if (plan.chunk_steps != 0) ++seen["chunk"];
    if (plan.is_split()) ++seen["split"];
    if (plan.blocks % plan.strips() == 0) splits.insert(plan.blocks / plan.strips());
    if (plan.blocks % plan.strips() != 0) ++seen["linear"];
    if (plan.blocks < plan.strips()) ++seen["several strips a block"];
    for (const std::uint32_t blocks : {7u, 128u, 132u}) {
      if (plan.blocks == blocks) ++seen["blocks " + std::to_string(blocks)];
    }
    if (problem.residual && point.residual_is_y) ++seen["residual y"];
    ++seen["warps_k " + std::to_string(plan.warps_k)];
    ++seen["warps_out " + std::to_string(plan.warps_out)];
    ++seen["unroll " + std::to_string(plan.unroll)];
    if (problem.layout == GemvLayout::R) ++seen["rows " + std::to_string(plan.rows)];
    ++seen["target " + point.target];
  }
  std::string text;
  for (const auto& [what, times] : seen) text += what + ": " + std::to_string(times) + "\n";
  if (full()) std::printf("%s", text.c_str());
  for (std::uint64_t s = 1; s <= 64; ++s) {
    INFO("split " << s);
    CHECK(splits.count(s) == 1);
  }
  const auto at_least = [&](const std::string& what, std::size_t times) {
    INFO(what);
    CHECK(seen[what] >= times);
  };
  for (const char* layout : {"T", "R"}) {
    at_least(std::string("layout ") + layout, 100);
    at_least(std::string("path direct ") + layout, 100);
    for (const char* type : {"f32", "f16", "bf16"}) {
      const std::string start = std::string("type ") + layout + " " + type;
      at_least(start + " x same y same", 5);
      if (std::string_view(type) == "f32") continue;
      at_least(start + " x f32 y f32", 5);
      at_least(start + " x same y f32", 5);
      at_least(start + " x f32 y same", 5);
    }
  }
  for (const char* load : {"load 2", "load 4", "load 8", "load 16"}) at_least(load, 10);
  for (const char* bits : {"000", "001", "010", "011", "100", "101", "110", "111"}) {
    at_least(std::string("epilogue ") + bits, 15);
  }
  for (const char* what :
       {"k 1", "n 1", "odd", "offset 1", "offset 2", "offset 3", "residual y", "linear",
        "several strips a block", "blocks 7", "blocks 128", "blocks 132"}) {
    at_least(what, 4);
  }
  for (const char* what :
       {"path async T", "path async R", "path bulk T", "path bulk R", "programmatic"}) {
    at_least(what, 20);
  }
  at_least("cluster", 15);
  for (const char* what : {"lda", "chunk", "split"}) at_least(what, 30);
}
