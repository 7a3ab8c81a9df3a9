// tests/kernels/gemv_blocks_test.cpp - GEMVs with weights in blocks, on a grid
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "gemv_blocks_run.hpp"
#include "ptx/dice.hpp"
#include "ptxgen/kernels/quantization/repacked_rows.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

constexpr ElementType kXTypes[] = {ElementType::f32, ElementType::f16, ElementType::bf16,
                                   ElementType::q8_1};
constexpr std::uint32_t kRows[] = {1, 2, 3, 4};
const std::string kBlockTargets[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};

// k of `type` with a tail of every kind.
std::uint32_t draw_k(Dice& dice, ElementType type) {
  const std::uint32_t block = info(type).block_values;
  const std::uint32_t max_k = dice.chance(10) ? 16384 : dice.chance(50) ? 4096 : 1024;
  return block * dice.between(1, max_k / block);
}

GemvPlan draw_plan(Dice& dice, ElementType type) {
  GemvPlan plan;
  GemvProblem& p = plan.problem;
  p.layout = GemvLayout::R;
  p.weights = type;
  p.k = draw_k(dice, type);
  p.n = dice.between(1, dice.chance(30) ? 70 : 9);
  p.x = dice.pick(kXTypes);
  p.y = dice.chance(80) ? ElementType::f32 : ElementType::f16;
  p.repacked = !repacked_fields(type).empty() && dice.chance(40);
  if (!p.repacked && dice.chance(20)) p.lda = p.k + info(type).block_values * dice.between(1, 3);
  p.scaled = dice.chance(15);
  p.bias = dice.chance(15);
  p.residual = dice.chance(15);
  plan.path = !p.repacked && dice.chance(60) ? GemvPath::Async : GemvPath::Direct;
  plan.stages = plan.path == GemvPath::Async ? dice.between(2, 4) : 0;
  plan.load_bytes = widest_load(p);
  if (!p.repacked && dice.chance(20)) plan.load_bytes = std::max(2u, plan.load_bytes / 2);
  plan.warps_out = dice.between(1, 4);
  plan.warps_k = dice.between(1, 4);
  plan.rows = dice.pick(kRows);
  plan.unroll = p.repacked ? dice.between(1, 3) : 1;
  plan.blocks = 1;
  const std::uint64_t units = plan.units();
  plan.blocks = static_cast<std::uint32_t>(
      dice.chance(40)
          ? plan.strips()
          : dice.between(1, static_cast<std::uint32_t>(std::min<std::uint64_t>(units, 64))));
  if (dice.chance(20)) plan.chunk_steps = dice.between(1, 3);
  plan.programmatic = dice.chance(20);
  plan.streaming = dice.chance(80);
  return plan;
}

std::vector<GemvCase> blocks_grid(std::size_t count) {
  std::vector<GemvCase> points;
  Dice dice(20261124);
  while (points.size() < count) {
    GemvCase point;
    point.plan = draw_plan(dice, kBlockTypes[points.size() % std::size(kBlockTypes)]);
    point.target = dice.pick(kBlockTargets);
    point.seed = dice.bits();
    if (admitted(point.plan, point.target)) points.push_back(point);
  }
  return points;
}

// Eight warps of four rows each (two of repacked q6_k), a step at a time.
GemvCase steady(ElementType weights, ElementType x, std::uint32_t k, bool repacked = false) {
  GemvCase point = blocks_layer(weights, x, 32, k);
  GemvPlan& plan = point.plan;
  plan.problem.repacked = repacked;
  plan.load_bytes = widest_load(plan.problem);
  plan.warps_out = 8;
  plan.rows = repacked && weights == ElementType::q6_k ? 2 : 4;
  plan.unroll = 1;
  plan.blocks = static_cast<std::uint32_t>(plan.strips());
  return point;
}

// What warps execute in every step: copies, x, decoding, products. Staging of x is executed less
// often.
double loop_instructions(const GemvPlan& plan, const emulator::Counters& counters) {
  const std::uint64_t steps = plan.steps() * plan.warps_out;
  double instructions = 0;
  for (const emulator::LineCounters& line : counters.lines) {
    if (line.executions >= steps) instructions += static_cast<double>(line.thread_executions);
  }
  return instructions / plan.problem.k / plan.problem.n;
}

struct Budget {
  ElementType weights;
  double exact, f16, fast;  ///< of a weight
};
// Of 4.4 for each weight of q4_k an H200 can issue at its read rate.
constexpr Budget kBudgets[] = {
    {ElementType::q4_0, 3.4, 2.2, 1.8}, {ElementType::q4_1, 3.4, 2.2, 1.8},
    {ElementType::q5_0, 4.4, 4.4, 2.4}, {ElementType::q5_1, 4.4, 4.4, 2.4},
    {ElementType::q8_0, 2.6, 2.6, 1.2}, {ElementType::q4_k, 3.6, 2.2, 1.8},
    {ElementType::q5_k, 4.4, 4.4, 2.4}, {ElementType::q6_k, 4.4, 4.4, 2.4}};

double counted(ElementType weights, ElementType x, bool repacked) {
  const GemvCase point = steady(weights, x, 12288, repacked);
  GemvRunner runner(point, make_blocks_data(point, XValues::Normal).data);
  const GemvOutcome outcome = runner.run();
  CHECK(outcome.findings == "");
  return loop_instructions(point.plan, outcome.counters);
}

}  // namespace

TEST_CASE("weights in blocks: the grid") {
  std::map<ElementType, double> worst;
  for (const GemvCase& point : blocks_grid(static_cast<std::size_t>(count(320, 1600)))) {
    const GemvProblem& problem = point.plan.problem;
    INFO(to_text(point));
    const BlocksData inputs = make_blocks_data(point, XValues::Normal);
    GemvRunner runner(point, inputs.data);
    const GemvOutcome outcome = runner.run();
    CHECK(outcome.findings == "");
    const double nmse =
        blocks_nmse(problem, inputs.data, stored_x(problem, inputs.data), outcome.y);
    const double limit = problem.y == ElementType::f32 ? 1e-9 : 1e-6;
    CHECK(nmse <= limit);
    if (problem.y == ElementType::f32)
      worst[problem.weights] = std::max(worst[problem.weights], nmse);
  }
  for (const auto& [type, nmse] : worst) {
    std::printf("%s: NMSE at most %.2g\n", std::string(to_string(type)).c_str(), nmse);
  }
}

// The rounding of one x is the same for all rows, so that its error varies by x: the mean of some.
TEST_CASE("weights in blocks: activations in q8_1 cost the accuracy that they should") {
  constexpr int kDraws = 8;
  for (const ElementType weights : kBlockTypes) {
    for (const XValues values : {XValues::Uniform, XValues::Normal}) {
      GemvCase point = steady(weights, ElementType::q8_1, 4096);
      point.plan.problem.n = 128;
      point.plan.blocks = static_cast<std::uint32_t>(point.plan.strips());
      double mean = 0;
      for (int draw = 0; draw < kDraws; ++draw) {
        point.seed = seed() + static_cast<std::uint64_t>(draw);
        const BlocksData inputs = make_blocks_data(point, values);
        GemvRunner runner(point, inputs.data);
        const GemvOutcome outcome = runner.run();
        CHECK(outcome.findings == "");
        mean += blocks_nmse(point.plan.problem, inputs.data, inputs.original_x, outcome.y) / kDraws;
      }
      INFO(to_string(weights) << ": " << mean);
      CHECK(mean <= (values == XValues::Uniform ? 2e-5 : 4e-5));
      CHECK(mean > 5e-6);  // x was rounded
    }
  }
}

TEST_CASE("weights in blocks: the same bits in every run, schedule and partition") {
  const auto check_bits = [](ElementType weights, bool repacked) {
    GemvCase point = steady(weights, ElementType::f16, 8192, repacked);
    point.plan.warps_out = 2;
    point.plan.rows = 2;
    point.plan.chunk_steps = 1;
    const BlocksData inputs = make_blocks_data(point, XValues::Normal);
    std::vector<std::byte> first;
    for (const std::uint32_t blocks : {1u, 3u, 8u}) {
      point.plan.blocks = blocks;
      GemvRunner runner(point, inputs.data);
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        emulator::Options options;
        options.seed = seed;
        const GemvOutcome outcome = runner.run(options);
        CHECK(outcome.findings == "");
        if (first.empty()) first = outcome.y;
        CHECK(outcome.y == first);
      }
    }
  };
  for (const ElementType weights : kBlockTypes) {
    check_bits(weights, false);
    if (!repacked_fields(weights).empty()) check_bits(weights, true);
  }
}

TEST_CASE("weights in blocks: instructions for each weight") {
  for (const Budget& budget : kBudgets) {
    double stored = 0;
    for (const bool repacked : {false, true}) {
      if (repacked && repacked_fields(budget.weights).empty()) continue;
      const double exact = counted(budget.weights, ElementType::f32, repacked);
      const double f16 = counted(budget.weights, ElementType::f16, repacked);
      const double fast = counted(budget.weights, ElementType::q8_1, repacked);
      std::printf("%s, %s: %.2f exact, %.2f of f16, %.2f of q8_1\n",
                  std::string(to_string(budget.weights)).c_str(),
                  repacked ? "repacked" : "as stored", exact, f16, fast);
      CHECK(exact <= budget.exact);
      CHECK(f16 <= budget.f16);
      CHECK(fast <= budget.fast);
      // What the planner takes them for, without x.
      CHECK(exact > 1);
      // There are no copies through shared memory.
      if (repacked) CHECK(exact < stored);
      stored = exact;
    }
  }
}

namespace {

std::string refusal(const GemvPlan& plan) {
  try {
    check(plan, ptx::target("sm_90a"));
  } catch (const Error& error) {
    return error.message;
  }
  return "";
}
template <class Change>
std::string refused(const Change& change) {
  GemvPlan plan = steady(ElementType::q4_k, ElementType::f32, 1024).plan;
  change(plan);
  return refusal(plan);
}

}  // namespace

TEST_CASE("weights in blocks: what is not served is refused with what is") {
  CHECK(refused([](GemvPlan&) {}) == "");
  CHECK(refused([](GemvPlan& plan) { plan.problem.k = 1000; }) ==
        "k is 1000; with weights of q4_k it may be a multiple of 256, the values of a block: pad "
        "the rows and x with zeros");
  CHECK(refused([](GemvPlan& plan) { plan.problem.lda = 1056; }) ==
        "lda is 1056; with weights of q4_k it may be a multiple of 256, the values of a block: pad "
        "the rows and x with zeros");
  CHECK(refused([](GemvPlan& plan) { plan.problem.layout = GemvLayout::T; }) ==
        "layout is T; with weights of q4_k it can only be R: blocks are parts of rows");
  CHECK(refused([](GemvPlan& plan) { plan.problem.weights = ElementType::q8_1; }) ==
        "weights is q8_1; it may be f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k or "
        "q6_k");
  CHECK(refused([](GemvPlan& plan) { plan.problem.x = ElementType::q8_0; }) ==
        "x is q8_0; with weights of q4_k it may be f32, f16, bf16, or q8_1 for the fast path");
  CHECK(refused([](GemvPlan& plan) {
          plan.problem.x = ElementType::q8_1;
          plan.problem.x_alignment = 2;
        }) ==
        "x_alignment is 2 B; it may be a power of two of at least 4 B, which its blocks need");
  CHECK(refused([](GemvPlan& plan) { plan.unroll = 2; }) ==
        "unroll is 2; it can only be 1 with blocks");
  CHECK(refused([](GemvPlan& plan) {
          plan.path = GemvPath::Bulk;
          plan.stages = 2;
        }) == "path is bulk; with weights in blocks it may be direct or async");
}

TEST_CASE("repacked rows: what is not served is refused with what is") {
  const auto refused_of = [](const auto& change) {
    GemvPlan plan = steady(ElementType::q6_k, ElementType::f32, 4096, true).plan;
    change(plan);
    return refusal(plan);
  };
  CHECK(refused_of([](GemvPlan&) {}) == "");
  CHECK(refused_of([](GemvPlan& plan) {
          plan.unroll = 2;
          plan.rows = 1;
        }) == "");
  CHECK(refused_of([](GemvPlan& plan) { plan.problem.weights = ElementType::q4_k; }) ==
        "repacked is true; q4_k has no repacked rows; q4_0, q4_1, q5_0, q5_1, q8_0 and q6_k do");
  CHECK(refused_of([](GemvPlan& plan) { plan.problem.lda = 4352; }) ==
        "lda is 4352; repacked rows follow one another: it may be 0");
  CHECK(refused_of([](GemvPlan& plan) { plan.problem.a_alignment = 8; }) ==
        "a_alignment is 8 B; with repacked rows it may be 16 B and more");
  CHECK(
      refused_of([](GemvPlan& plan) { plan.load_bytes = 8; }) ==
      "load_bytes is 8; it may be a power of two from 16, an element, to 16, to which the address "
      "of every row is aligned");
  CHECK(refused_of([](GemvPlan& plan) {
          plan.path = GemvPath::Async;
          plan.stages = 2;
        }) == "path is async; with repacked rows it can only be direct");
}

TEST_CASE("weights in blocks: an infinity or a NaN in x gives NaN") {
  for (const float special : {INFINITY, NAN}) {
    const GemvCase point = steady(ElementType::q4_0, ElementType::f32, 2048);
    BlocksData inputs = make_blocks_data(point, XValues::Normal);
    set_element(inputs.data.x, ElementType::f32, 777, special);
    GemvRunner runner(point, inputs.data);
    for (const float y : runner.run().floats()) CHECK(std::isnan(y));
  }
}

}  // namespace ptxgen::test
