// src/kernels/gemv/partition.hpp - partition of the work, layout of partial sums
#pragma once

#include <cstdint>

#include "kernels/gemv/block_format.hpp"
#include "ptxgen/kernels/gemv/plan.hpp"

namespace ptxgen::inline v0::gemv {

[[nodiscard]] constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) noexcept {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// Loads of partial sums that a lane has in flight when it adds them.
inline constexpr std::uint32_t kPartsAtOnce = 8;

/// Null unless the weights are in blocks.
[[nodiscard]] inline const BlockFormat* block_format(const GemvProblem& problem) noexcept {
  return block_format(problem.weights, problem.k, problem.repacked);
}

/// Weights of one load of a lane; of blocks, those of its unit of a step.
[[nodiscard]] inline std::uint32_t lane_elements(const GemvPlan& plan) noexcept {
  const BlockFormat* blocks = block_format(plan.problem);
  return blocks != nullptr ? blocks->unit : plan.load_bytes / bytes(plan.problem.weights);
}

/// Items that are distributed over blocks: steps, or chunks of steps.
struct Items {
  std::uint64_t per_strip = 1;
  std::uint64_t steps = 1;  ///< of an item; the last one of a strip may have fewer
  std::uint64_t all = 1;
  /// Every block has items of one strip only, and every strip the same number of blocks.
  bool blocks_in_strip = false;
  /// Every block has whole strips.
  bool full_strips = false;
};
[[nodiscard]] Items items(const GemvPlan& plan) noexcept;

/// floor(block * all / blocks).
[[nodiscard]] std::uint64_t first_item(const Items& items, std::uint64_t blocks,
                                       std::uint64_t block) noexcept;

/// Whether partial sums go through the workspace.
[[nodiscard]] bool uses_workspace(const GemvPlan& plan) noexcept;

/// Slots of partial sums in the workspace. With chunks, chunk c of a strip has slot `strip * chunks
/// + c`; if blocks (or clusters) have one strip each, the slot is their number; otherwise block b
/// in strip s has slot `b + s`, which is unique for the partition. The slots of a strip are always
/// consecutive in the order of k.
[[nodiscard]] std::uint64_t slots(const GemvPlan& plan) noexcept;
/// Bytes of one slot: the sums of a strip, f32, a multiple of 16.
[[nodiscard]] std::uint64_t slot_bytes(const GemvPlan& plan) noexcept;

/// Shared memory, bytes: sums of the warps after the first along k, and the flag of the last
/// arriver.
[[nodiscard]] std::uint64_t stack_bytes(const GemvPlan& plan) noexcept;
inline constexpr std::uint64_t kVerdictBytes = 16;
/// Sums of a cluster's blocks after the first, bytes.
[[nodiscard]] std::uint64_t rank_bytes(const GemvPlan& plan) noexcept;
/// Of path Bulk: two per stage of the ring.
[[nodiscard]] std::uint64_t mbarrier_bytes(const GemvPlan& plan) noexcept;
/// Shared memory of the ring of paths Async and Bulk, bytes; with blocks, of one step on path
/// Direct.
[[nodiscard]] std::uint64_t ring_bytes(const GemvPlan& plan) noexcept;
/// Weights in blocks: steps of which x is in shared memory at a time, and its bytes.
[[nodiscard]] std::uint32_t window_steps(const GemvPlan& plan) noexcept;
[[nodiscard]] std::uint64_t window_bytes(const GemvPlan& plan) noexcept;
/// Whether x of a block's strips is the same and stays in shared memory: it is staged once.
[[nodiscard]] bool keeps_x(const GemvPlan& plan) noexcept;
/// Dynamic shared memory, bytes: the ring and the window.
[[nodiscard]] std::uint64_t dynamic_bytes(const GemvPlan& plan) noexcept;
/// Maximum of steps of a block in one strip.
[[nodiscard]] std::uint64_t max_segment_steps(const GemvPlan& plan) noexcept;
/// Registers per thread for all loads of a step in flight: loaded values, sums, addresses and
/// conversions (measured with ptxas; with fewer it spills).
[[nodiscard]] std::uint32_t min_registers(const GemvPlan& plan) noexcept;
/// Blocks for which registers are left on a multiprocessor, at least `blocks_per_sm`: the directive
/// `.minnctapersm`.
[[nodiscard]] std::uint32_t resident_blocks(const GemvPlan& plan) noexcept;
/// Registers that a thread may have for `blocks_per_sm` resident blocks, at most 255.
[[nodiscard]] std::uint32_t max_registers(const GemvPlan& plan) noexcept;
/// Weights of one step in registers or in a ring, bytes; in shared memory they may take more.
[[nodiscard]] std::uint64_t step_bytes(const GemvPlan& plan) noexcept;

}  // namespace ptxgen::inline v0::gemv
