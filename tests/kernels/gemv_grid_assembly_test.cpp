// tests/kernels/gemv_grid_assembly_test.cpp - GEMV plans for all targets, by an assembler
#include <catch2/catch.hpp>

#include <cstdio>

#include "gemv_grid_run.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

/// Plans as a planner makes them: the widest loads, eight of them on their way.
std::vector<GemvCase> representative_plans() {
  std::vector<GemvCase> cases;
  for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
    for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
      for (const GemvPath path : {GemvPath::Direct, GemvPath::Async, GemvPath::Bulk}) {
        for (const unsigned variant : {0u, 1u, 2u}) {
          GemvCase point;
          GemvPlan& plan = point.plan;
          plan.problem.layout = layout;
          plan.problem.weights = type;
          plan.problem.k = 4096;
          plan.problem.n = variant == 2 ? 4099 : 4096;
          plan.problem.x = variant == 1 ? type : ElementType::f32;
          plan.problem.y = plan.problem.x;
          plan.problem.bias = plan.problem.residual = plan.problem.scaled = variant == 1;
          if (variant == 2 && layout == GemvLayout::R) plan.problem.lda = 4099;
          plan.load_bytes = widest_load(plan.problem);
          plan.path = path;
          plan.stages = path == GemvPath::Direct ? 0 : 3;
          plan.warps_out = variant == 1 ? 1 : 4;
          plan.warps_k = variant == 1 ? 4 : 1;
          plan.rows = layout == GemvLayout::R ? 1 + variant : 1;
          plan.unroll = 8;
          plan.blocks = variant == 0 ? static_cast<std::uint32_t>(plan.strips() * 4) : 132;
          plan.blocks_per_sm = 4;
          cases.push_back(point);
        }
      }
    }
  }
  return cases;
}

}  // namespace

TEST_CASE("no plan spills, on any target, and registers are within the plan") {
  const Assembler assembler(Settings::from_environment());
  if (!assembler.available())
    return test::skip("no assembler: install the CUDA 13 toolkit's nvJitLink or ptxas");
  const std::vector<GemvCase> cases = representative_plans();
  const std::span<const ptx::Target> targets = ptx::targets();
  // Every day each plan for a few targets, so that each target has some; all of them in a full run.
  const std::size_t step = full() ? 1 : 7;
  std::size_t assembled = 0;
  std::uint32_t largest = 0;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    std::size_t here = 0;
    for (std::size_t c = 0; c < cases.size(); ++c) {
      const GemvPlan& plan = cases[c].plan;
      if ((c + t) % step != 0 || !admitted(plan, targets[t].name)) continue;
      INFO(to_text(plan.problem) << " | " << to_text(plan) << " for " << targets[t].name);
      AssembleOptions options;
      options.target = targets[t].name;
      const std::string text = Gemv{plan}.build(targets[t]).ptx();
      const Assembly result = assembler.assemble(text, options);
      REQUIRE(result.kernels.size() == 1);
      CHECK(result.spill_stores + result.spill_loads == 0);
      CHECK(result.kernels[0].stack == 0);
      // Registers are given to warps by 256.
      const std::uint32_t registers = (result.registers + 7) / 8 * 8;
      CHECK(registers * plan.threads() * plan.blocks_per_sm <= 65536);
      largest = std::max(largest, result.registers);
      ++assembled;
      ++here;
    }
    INFO(targets[t].name);
    CHECK(here > 0);
  }
  std::printf("gemv assembly: %zu plans and targets, no spills, at most %u registers\n", assembled,
              largest);
}
