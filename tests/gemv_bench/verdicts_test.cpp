// tests/gemv_bench/verdicts_test.cpp - claims as data, and the verdict of measured figures
#include <catch2/catch.hpp>

#include "bench/gemv/claims.hpp"
#include "cli_common/program.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::gemv_bench;

namespace {

MetricResult metric(Metric which, double us) {
  MetricResult result;
  result.metric = which;
  result.us.n = 200;
  result.us.median = us;
  return result;
}

ArmResult arm(const std::string& name, double isolated, double chained, double stream = 0) {
  ArmResult result;
  result.arm.name = name;
  if (isolated > 0) result.metrics.push_back(metric(Metric::Isolated, isolated));
  if (chained > 0) result.metrics.push_back(metric(Metric::Chained, chained));
  if (stream > 0) result.metrics.push_back(metric(Metric::Stream, stream));
  return result;
}

ShapeResult shape(GemvLayout layout, ElementType type, std::uint32_t k, std::uint32_t n,
                  std::vector<ArmResult> arms) {
  ShapeResult result;
  result.problem.layout = layout;
  result.problem.weights = result.problem.x = result.problem.y = type;
  result.problem.k = k;
  result.problem.n = n;
  result.arms = std::move(arms);
  return result;
}

BenchRun h200() {
  BenchRun run;
  run.machine.gpu = "NVIDIA H200";
  run.machine.emulated = false;
  run.machine.datasheet_gb_per_s = 4800;
  Ceiling copy;
  copy.name = "copy";
  copy.bytes = 1'000'000'000;
  copy.us.median = 1e6 / 4300;  // 4.3 TB/s
  run.ceilings.push_back(copy);
  return run;
}

std::vector<Verdict> verdicts_of(const BenchRun& run) {
  return gemv_bench::verdicts_of(run, read_claims(built_in_claims(), "claims.json"));
}

const Verdict& verdict(const std::vector<Verdict>& all, const std::string& id) {
  for (const Verdict& one : all) {
    if (one.id == id) return one;
  }
  FAIL("there is no verdict " + id);
  return all.front();
}

void check(const BenchRun& run, const std::string& id, Verdict::Says says,
           const std::string& measured) {
  INFO(id);
  const std::vector<Verdict> all = verdicts_of(run);
  const Verdict& one = verdict(all, id);
  CHECK(to_string(one.says) == to_string(says));
  CHECK(one.measured == measured);
}

constexpr auto kPass = Verdict::Says::Pass;
constexpr auto kFail = Verdict::Says::Fail;
constexpr auto kNone = Verdict::Says::NotApplicable;
constexpr auto T = GemvLayout::T;
constexpr auto R = GemvLayout::R;
constexpr auto kF32 = ElementType::f32;

}  // namespace

TEST_CASE("every claim has a verdict, in the same order whatever was measured") {
  std::vector<std::string> ids;
  for (const Verdict& one : verdicts_of(h200())) {
    ids.push_back(one.id);
    CHECK(to_string(one.says) == "n/a");
    CHECK(!one.claim.empty());
    CHECK(!one.measured.empty());
  }
  CHECK(ids == std::vector<std::string>{"E1",  "E2",  "E3",  "E4",  "E5",  "E6",  "E7",
                                        "E8",  "E9",  "E10", "E11", "E12", "H1a", "H1b",
                                        "H2",  "H3",  "H4",  "H5",  "P1",  "P2",  "P3",
                                        "P4a", "P4b", "P4c", "P5",  "P8",  "P16"});
  BenchRun run = h200();
  run.shapes.push_back(shape(T, kF32, 4096, 4096, {arm("planned", 17, 15.8, 20)}));
  const std::vector<Verdict> all = verdicts_of(run);
  REQUIRE(all.size() == ids.size());
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i].id == ids[i]);
}

TEST_CASE("times of the big squares") {
  BenchRun run = h200();
  run.shapes.push_back(
      shape(T, kF32, 4096, 4096,
            {arm("planned", 17.5, 15.9, 20), arm("strided", 350, 340), arm("roofline", 17, 15.5),
             arm("starved-4", 0, 60), arm("starved-16", 0, 20), arm("full-4", 0, 16.5),
             arm("full-16", 0, 15), arm("threads-256", 0, 16), arm("threads-1024", 0, 12)}));
  run.shapes.push_back(shape(T, kF32, 2048, 2048, {arm("planned", 6.5, 4.2)}));
  check(run, "E1", kPass, "17.50 us");
  check(run, "E2", kPass, "6.50 us");
  check(run, "E3", kNone, "not measured");
  check(run, "E4", kPass, "50000 products/s");
  // 67.1 MB in 17.5 us are 3835 GB/s.
  check(run, "E5", kPass, "79.9 % (3835 GB/s by time; the DRAM counter is ncu's)");
  check(run, "E8", kPass, "20.0 times, base 350.00 us");
  check(run, "H1b", kPass, "97.5 %");
  // 1.15 * 67.1 MB / 4.3 TB/s + 3.5 us
  check(run, "H2", kPass, "17.50 us of at most 21.45 us");
  check(run, "H3", kPass, "50000 products/s");
  check(run, "H4", kPass, "3.00 times starved, 1.10 times full");
  check(run, "H5", kFail, "1.33 times");
  check(run, "P2", kPass, "17.50 us, 15.90 us");
  check(run, "P3", kFail, "6.50 us, 4.20 us");
  run.machine.gpu = "NVIDIA GeForce RTX 4090";
  check(run, "P2", kNone, "17.50 us, 15.90 us; this is no H200");

  // The same figures from the emulator say nothing.
  run.machine.emulated = true;
  check(run, "E1", kNone, "the emulator's times say nothing about a GPU");
  check(run, "E3", kNone, "not measured");
}

TEST_CASE("against cuBLAS the worst shape counts, and the better of its ways") {
  BenchRun run = h200();
  run.shapes.push_back(
      shape(T, kF32, 1024, 1024,
            {arm("planned", 3, 2), arm("cublas-gemv", 9, 8), arm("cublas-gemm", 7, 5)}));
  run.shapes.push_back(
      shape(R, kF32, 8192, 8192, {arm("planned", 64, 63), arm("cublas-gemv", 60, 75)}));
  check(run, "E9", kPass, "1.07 times at most, R f32 8192x8192, isolated");
  check(run, "P4a", kPass, "1.19 times at least, R f32 8192x8192");
  check(run, "P4b", kPass, "1.85 over 2 problems");
  check(run, "P4c", kPass, "2.50 times at least, T f32 1024x1024");
  run.shapes[1].arms[1] = arm("cublas-gemv", 40, 60);
  check(run, "E9", kFail, "1.60 times at most, R f32 8192x8192, isolated");
  check(run, "P4a", kFail, "0.95 times at least, R f32 8192x8192");
}

TEST_CASE("layouts, large matrices, the order of additions and predictions") {
  BenchRun run = h200();
  run.shapes.push_back(shape(T, kF32, 8192, 8192,
                             {arm("planned", 66, 64), arm("roofline", 65, 62), arm("nvrtc", 0, 70),
                              arm("nvrtc-atomic", 0, 69)}));
  run.shapes.push_back(shape(R, kF32, 8192, 8192, {arm("planned", 65, 63)}));
  GemvPrediction prediction;
  prediction.isolated_us = 66;
  prediction.chained_us = 60;
  run.shapes[0].arms[0].arm.prediction = prediction;
  check(run, "P1", kFail, "96.9 % at least, T f32 8192x8192");
  check(run, "P5", kPass, "1.6 % slower at most, T f32 8192x8192");
  check(run, "P8", kPass, "1.4 % at most, T f32 8192x8192");
  check(run, "P16", kPass, "6.2 % off at most, T f32 8192x8192, chained");
}

TEST_CASE("a token of a model needs all its shapes") {
  BenchRun run = h200();
  // 4 squares, 2 up and 1 down in each of 32 layers, and the head.
  run.shapes.push_back(shape(R, kF32, 4096, 4096, {arm("planned", 0, 16)}));
  run.shapes.push_back(shape(R, kF32, 4096, 11008, {arm("planned", 0, 43)}));
  run.shapes.push_back(shape(R, kF32, 11008, 4096, {arm("planned", 0, 44)}));
  check(run, "E7", kNone, "not all of its shapes were measured");
  run.shapes.push_back(shape(R, kF32, 4096, 32000, {arm("planned", 0, 125)}));
  // 32 * (64 + 86 + 44) + 125 = 6333 us
  check(run, "E7", kPass, "157.9 tokens/s, R f32 (the slowest of 1)");
}

TEST_CASE("counted bytes need no clock") {
  BenchRun run = h200();
  run.machine.emulated = true;
  run.shapes.push_back(shape(T, kF32, 64, 64, {arm("planned", 1, 1)}));
  GemvPrediction prediction;
  prediction.weight_sectors = 64 * 64 * 4 / 32;
  run.shapes[0].arms[0].arm.prediction = prediction;
  check(run, "E6", kPass, "100.00 % at least, T f32 64x64 (counted)");
  run.shapes[0].arms[0].arm.prediction->weight_sectors *= 2;
  check(run, "E6", kFail, "50.00 % at least, T f32 64x64 (counted)");
  check(run, "H1a", kFail, "50.00 % at least, T f32 64x64 (counted)");
}

TEST_CASE("claims are data: another file can replace them, and errors in it are named") {
  BenchRun run = h200();
  run.shapes.push_back(shape(T, kF32, 64, 64, {arm("planned", 3, 2)}));
  const auto claims = read_claims(
      R"({"claims": [{"id": "A", "claim": "fast", "terms": [{"quantity": "time", "size": 64,
         "metric": "chained", "below": 2.5, "show": "{value:.1f} us"}]}]})",
      "mine.json");
  const auto verdicts = gemv_bench::verdicts_of(run, claims);
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].says == kPass);
  CHECK(verdicts[0].measured == "2.0 us");

  const auto refused = [](const char* terms, const std::string& why) {
    const std::string text =
        std::string(R"({"claims": [{"id": "A", "claim": "c", "terms": [)") + terms + "]}]}";
    CHECK_THROWS_WITH(read_claims(text, "mine.json"), Catch::Contains(why));
  };
  refused(R"({"quantity": "speed", "below": 1})", "mine.json: there is no quantity 'speed'");
  refused(R"({"quantity": "time", "bellow": 1})", "mine.json: a term has no field 'bellow'");
  refused(R"({"quantity": "time", "metric": "hot", "below": 1})", "there is no metric 'hot'");
  refused(R"({"quantity": "time"})", "a term needs a bound");
  refused("", "claim A needs terms, or 'missing'");
  CHECK_THROWS_WITH(read_claims("{", "mine.json"), Catch::Contains("mine.json: no list of claims"));
  const auto odd = read_claims(
      R"({"claims": [{"id": "A", "claim": "c", "terms": [{"quantity": "time", "size": 64,
         "metric": "chained", "below": 1, "show": "{speed}"}]}]})",
      "mine.json");
  CHECK_THROWS_AS(gemv_bench::verdicts_of(run, odd), cli::UsageError);
}
