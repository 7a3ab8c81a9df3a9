// src/model/emulator_plans.hpp - plans of products that suit the emulator
#pragma once

#include "ptxgen/kernels/attention/flash.hpp"
#include "ptxgen/kernels/gemm/planner.hpp"
#include "ptxgen/kernels/gemv/group.hpp"
#include "ptxgen/kernels/gemv/operands.hpp"

namespace ptxgen::inline v0::model {

/// Blocks of many rows, each of which prepares x once.
class EmulatorPlans final : public GemvPlanSource {
 public:
  [[nodiscard]] std::optional<TunedGemv> find(const GemvProblem& problem) const override;
};

/// Rows of a lane (`GemvGroup::lane_rows`) for the group; 0 if its matrices do not allow that.
[[nodiscard]] std::uint32_t lane_rows(GemvGroup group, const ptx::Target& target);

/// The most rows for each warp with which the target can run the group.
[[nodiscard]] std::uint32_t max_warp_rows(GemvGroup group, const ptx::Target& target);

/// Attention of many queries: with the largest tile that the target has the memory for, which reads
/// keys and values the fewest times.
[[nodiscard]] FlashAttention emulator_flash(const FlashProblem& problem, const ptx::Target& target);

/// A matrix product of many rows: the emulator's time is that of the instructions, not of the SMs
/// that a small product leaves idle, so tiles are large. Empty: the planner's choice.
[[nodiscard]] std::optional<GemmKernel> emulator_gemm(const GemmProblem& problem,
                                                      const ptx::Target& target);

}  // namespace ptxgen::inline v0::model
