// src/kernels/gemv/registers.cpp - registers of a GEMV kernel
#include <algorithm>

#include "kernels/gemv/model.hpp"
#include "kernels/gemv/partition.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

// Beyond what a step's loads and sums take (`least_registers`): what ptxas 13.0 needed for random
// and for planned kernels of all types on sm_75 to sm_120a, and a little more.
constexpr std::uint32_t kAddresses = 6;
constexpr std::uint32_t kSegments = 4;   // a block that goes from strip to strip
constexpr std::uint32_t kExchange = 4;   // slots and tickets, kept over the sums
constexpr std::uint32_t kAddParts = 28;  // partial sums being added, beside the sums themselves
constexpr std::uint32_t kPartsAtOnce = 8;
constexpr std::uint32_t kUnit = 8;  // registers are given to a thread in such portions

// The plan as far as the matrix fills it: a row shorter than a step has fewer loads.
GemvPlan filled(GemvPlan plan) noexcept {
  const std::uint64_t load =
      plan.problem.layout == GemvLayout::T ? 1 : 32 * std::uint64_t{lane_elements(plan)};
  const std::uint64_t loads = std::max<std::uint64_t>(1, ceil_div(plan.problem.k, load));
  plan.unroll = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan.unroll, loads));
  return plan;
}

}  // namespace

std::uint32_t registers(const GemvPlan& plan) noexcept {
  const Items parts = items(plan);
  const bool by_row = plan.problem.layout == GemvLayout::R;
  const bool exchanges = uses_workspace(plan);
  const bool loops = !parts.blocks_in_strip || plan.chunk_steps != 0;
  std::uint32_t most = least_registers(filled(plan)) + kAddresses + (loops ? kSegments : 0) +
                       (exchanges ? kExchange : 0);
  if (exchanges) {
    const std::uint32_t sums = by_row ? plan.rows : lane_elements(plan);
    const std::uint32_t loaded = kPartsAtOnce * (by_row ? 1 : std::min(lane_elements(plan), 4u));
    most = std::max(most, loaded + sums + kAddParts);
  }
  return std::min(most_registers(plan), static_cast<std::uint32_t>(ceil_div(most, kUnit) * kUnit));
}

}  // namespace ptxgen::inline v0::gemv
