// src/kernels/gemv/partition.hpp - who computes what, and where partial sums lie
#pragma once

#include <cstdint>

#include "ptxgen/kernels/gemv/plan.hpp"

namespace ptxgen::inline v0::gemv {

[[nodiscard]] constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) noexcept {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// Weights of one load of a lane.
[[nodiscard]] inline std::uint32_t lane_elements(const GemvPlan& plan) noexcept {
  return plan.load_bytes / bytes(plan.problem.weights);
}

/// What the blocks divide among themselves: steps, or chunks of steps where the plan has them.
struct Items {
  std::uint64_t per_strip = 1;
  std::uint64_t steps = 1;  ///< of an item; the last one of a strip may have fewer
  std::uint64_t all = 1;
  /// Every block has items of one strip only, and every strip the same number of blocks.
  bool blocks_in_strip = false;
  /// Every block has whole strips.
  bool whole_strips = false;
};
[[nodiscard]] Items items(const GemvPlan& plan) noexcept;

/// floor(block * all / blocks).
[[nodiscard]] std::uint64_t first_item(const Items& items, std::uint64_t blocks,
                                       std::uint64_t block) noexcept;

/// Whether partial sums go through the workspace.
[[nodiscard]] bool uses_workspace(const GemvPlan& plan) noexcept;

/// Places for partial sums of a strip in the workspace. Where a strip is made of chunks, its chunk
/// c has place `strip * chunks + c`; where blocks (or clusters) stay in a strip, theirs is their
/// number; else that of block b in strip s is `b + s`, which no other pair of a line of units that
/// is cut into blocks has. In every case the places of a strip are neighbours in the order of k.
[[nodiscard]] std::uint64_t slots(const GemvPlan& plan) noexcept;
/// Bytes of one such place: the sums of a strip, f32, a multiple of 16.
[[nodiscard]] std::uint64_t slot_bytes(const GemvPlan& plan) noexcept;

/// Shared memory, bytes: sums of the warps behind the first along k, and what the last arriver is
/// told by.
[[nodiscard]] std::uint64_t stack_bytes(const GemvPlan& plan) noexcept;
inline constexpr std::uint64_t kVerdictBytes = 16;
/// Sums of a cluster's blocks behind the first, bytes.
[[nodiscard]] std::uint64_t rank_bytes(const GemvPlan& plan) noexcept;
/// Of path Bulk: two for each place of the ring.
[[nodiscard]] std::uint64_t mbarrier_bytes(const GemvPlan& plan) noexcept;
/// Dynamic shared memory, bytes: the ring of paths Async and Bulk.
[[nodiscard]] std::uint64_t ring_bytes(const GemvPlan& plan) noexcept;
/// Registers of a thread that let all loads of a step be on their way: what these bring, the sums,
/// and what addresses and conversions take (measured with ptxas; with fewer it spills).
[[nodiscard]] std::uint32_t min_registers(const GemvPlan& plan) noexcept;
/// Registers that a thread may have where `blocks_per_sm` blocks are to fit, at most 255.
[[nodiscard]] std::uint32_t max_registers(const GemvPlan& plan) noexcept;
/// Weights of one step, bytes, as they lie in registers or in a ring.
[[nodiscard]] std::uint64_t step_bytes(const GemvPlan& plan) noexcept;

}  // namespace ptxgen::inline v0::gemv
