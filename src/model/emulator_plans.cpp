// src/model/emulator_plans.cpp - plans of products that suit the emulator
#include "model/emulator_plans.hpp"

#include <algorithm>

#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::model {

namespace {

constexpr std::uint32_t kWarps = 8;
constexpr std::uint32_t kBlocks = 32;

// Of a warp. With more rows of large blocks, kernels have too many accesses to shared memory for
// the gate that compares them.
std::uint32_t rows_of(ElementType weights) { return info(weights).block_values > 32 ? 4 : 8; }

// Of a lane: each has its weights in registers.
std::uint32_t repacked_rows_of(ElementType weights) {
  return weights == ElementType::q6_k ? 2 : weights == ElementType::q8_0 ? 4 : 8;
}

bool can_run(const GemvGroup& group, const ptx::Target& target) {
  try {
    group.check_layout(target);
    return true;
  } catch (const Error&) {
    return false;
  }
}
template <class K>
bool can_run(const K& kernel, const ptx::Target& target) {
  try {
    check(kernel, target);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Blocks that keep the host's threads busy to the end of a launch.
constexpr std::uint32_t kMinLaneBlocks = 8;

}  // namespace

std::optional<TunedGemv> EmulatorPlans::find(const GemvProblem& problem) const {
  // Lanes read rows of other types with several loads in flight, and x directly.
  if (problem.layout != GemvLayout::R || !is_block_format(problem.weights)) return std::nullopt;
  GemvPlan plan;
  plan.problem = problem;
  plan.load_bytes = widest_load(problem);
  plan.warps_out = kWarps;
  plan.unroll = 1;
  plan.rows = rows_of(problem.weights) / plan.warp_outputs();  // of one row, as `rows` is still 1
  if (problem.repacked) plan.rows = std::min(plan.rows, repacked_rows_of(problem.weights));
  // A block has several strips, for which it prepares x once.
  plan.chunk_steps = static_cast<std::uint32_t>(plan.steps());
  plan.blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan.strips(), kBlocks));
  return TunedGemv{plan, "many rows of a warp, for the emulator"};
}

std::optional<GemmKernel> emulator_gemm(const GemmProblem& problem, const ptx::Target& target) {
  if (problem.type == ElementType::f32) return GemmTiled{problem, problem.m > 64 ? 128u : 64u};
  const GemmMma kernel{problem, problem.m > 64 ? GemmTile::t128x64x32 : GemmTile::t64x64x32, 2};
  return can_run(kernel, target) ? std::optional<GemmKernel>(kernel) : std::nullopt;
}

FlashAttention emulator_flash(const FlashProblem& problem, const ptx::Target& target) {
  for (std::size_t tile = 1; tile < std::size(kFlashTiles); ++tile) {
    const FlashAttention kernel{problem, static_cast<FlashTile>(tile)};
    if (can_run(kernel, target)) return kernel;
  }
  return {problem};
}

std::uint32_t lane_rows(GemvGroup group, const ptx::Target& target) {
  // With more rows a lane reads x less often.
  for (group.lane_rows = 4; group.lane_rows > 1; group.lane_rows /= 2) {
    if (can_run(group, target) && group.geometry().grid.x >= kMinLaneBlocks) break;
  }
  return can_run(group, target) ? group.lane_rows : 0;
}

std::uint32_t max_warp_rows(GemvGroup group, const ptx::Target& target) {
  group.warp_rows = std::min(rows_of(group.w0), rows_of(group.w1));
  if (group.n2 != 0) group.warp_rows = std::min(group.warp_rows, rows_of(group.w2));
  for (; group.warp_rows > 2; group.warp_rows /= 2) {
    if (can_run(group, target)) break;
  }
  return group.warp_rows;
}

}  // namespace ptxgen::inline v0::model
