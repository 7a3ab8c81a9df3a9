// tests/kernels/gemv_blocks_test.cpp - GEMVs with weights in blocks, on a grid
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include "gemv_blocks_run.hpp"
#include "ptx/dice.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

constexpr ElementType kTypes[] = {ElementType::q4_0, ElementType::q4_1, ElementType::q5_0,
                                  ElementType::q5_1, ElementType::q8_0, ElementType::q4_k,
                                  ElementType::q5_k, ElementType::q6_k};

constexpr ElementType kXTypes[] = {ElementType::f32, ElementType::f16, ElementType::bf16,
                                   ElementType::q8_1};
constexpr std::uint32_t kRows[] = {1, 2, 3, 4};
const std::string kTargets[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};

// k of `type` with a tail of every kind.
std::uint32_t draw_k(Dice& dice, ElementType type) {
  const std::uint32_t block = info(type).block_values;
  const std::uint32_t most = dice.chance(10) ? 16384 : dice.chance(50) ? 4096 : 1024;
  return block * dice.between(1, most / block);
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
  if (dice.chance(20)) p.lda = p.k + info(type).block_values * dice.between(1, 3);
  p.scaled = dice.chance(15);
  p.bias = dice.chance(15);
  p.residual = dice.chance(15);
  plan.path = dice.chance(60) ? GemvPath::Async : GemvPath::Direct;
  plan.stages = plan.path == GemvPath::Async ? dice.between(2, 4) : 0;
  plan.load_bytes = widest_load(p);
  if (dice.chance(20)) plan.load_bytes = std::max(2u, plan.load_bytes / 2);
  plan.warps_out = dice.between(1, 4);
  plan.warps_k = dice.between(1, 4);
  plan.rows = dice.pick(kRows);
  plan.unroll = 1;
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
    point.plan = draw_plan(dice, kTypes[points.size() % std::size(kTypes)]);
    point.target = dice.pick(kTargets);
    point.seed = dice.bits();
    if (admitted(point.plan, point.target)) points.push_back(point);
  }
  return points;
}

}  // namespace

TEST_CASE("weights in blocks: the grid") {
  std::map<ElementType, double> worst;
  for (const GemvCase& point : blocks_grid(static_cast<std::size_t>(count(320, 1600)))) {
    const GemvProblem& problem = point.plan.problem;
    INFO(to_text(point));
    const BlocksData made = make_blocks_data(point, XValues::Normal);
    GemvRunner runner(point, made.data);
    const GemvOutcome outcome = runner.run();
    CHECK(outcome.findings == "");
    const double nmse = blocks_nmse(problem, made.data, stored_x(problem, made.data), outcome.y);
    const double limit = problem.y == ElementType::f32 ? 1e-9 : 1e-6;
    CHECK(nmse <= limit);
    if (problem.y == ElementType::f32)
      worst[problem.weights] = std::max(worst[problem.weights], nmse);
  }
  for (const auto& [type, nmse] : worst) {
    std::printf("%s: NMSE at most %.2g\n", std::string(to_string(type)).c_str(), nmse);
  }
}

}  // namespace ptxgen::test
