// src/kernels/gemv/registers.cpp - registers of a GEMV kernel
#include <algorithm>

#include "kernels/gemv/model.hpp"
#include "kernels/gemv/partition.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

// Beyond what a step's loads and sums take (`min_registers`): what ptxas 13.0 needed for random
// and for planned kernels of all types on sm_75 to sm_120a, and a little more.
constexpr std::uint32_t kAddresses = 6;
constexpr std::uint32_t kSegments = 4;   // a block that goes from strip to strip
constexpr std::uint32_t kExchange = 4;   // slots and tickets, kept over the sums
constexpr std::uint32_t kAddParts = 28;  // partial sums being added, beside the sums themselves
constexpr std::uint32_t kUnit = 8;       // allocation granularity of registers per thread

// The plan limited by the matrix: a row shorter than a step has fewer loads.
GemvPlan filled(GemvPlan plan) noexcept {
  const std::uint64_t load =
      plan.problem.layout == GemvLayout::T ? 1 : 32 * std::uint64_t{lane_elements(plan)};
  const std::uint64_t loads = std::max<std::uint64_t>(1, ceil_div(plan.problem.k, load));
  plan.unroll = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan.unroll, loads));
  return plan;
}

// Where two lanes exchange halves of their elements of x (layout R, 32 bytes a lane), the assembler
// exchanges all of a step's at once on targets before sm_90.
std::uint32_t exchanged_factors(const GemvPlan& plan, std::uint16_t sm) noexcept {
  const GemvProblem& problem = plan.problem;
  const std::uint32_t lane_bytes = lane_elements(plan) * bytes(problem.x);
  if (sm >= 90 || problem.layout != GemvLayout::R || lane_bytes != 32) return 0;
  constexpr std::uint32_t kOthers = 8;
  return 2 * filled(plan).unroll * lane_bytes / 4 + kOthers;
}

}  // namespace

std::uint32_t registers(const GemvPlan& plan, std::uint16_t sm) noexcept {
  const Items parts = items(plan);
  const bool by_row = plan.problem.layout == GemvLayout::R;
  const bool exchanges = uses_workspace(plan);
  const bool loops = !parts.blocks_in_strip || plan.chunk_steps != 0;
  std::uint32_t largest = min_registers(filled(plan)) + kAddresses + (loops ? kSegments : 0) +
                          (exchanges ? kExchange : 0) + exchanged_factors(plan, sm);
  if (exchanges) {
    const std::uint32_t sums = by_row ? 1 : lane_elements(plan);
    const std::uint32_t vector = by_row ? 1 : std::min(lane_elements(plan), 4u);
    const std::uint64_t units = sums / vector;
    const std::uint64_t loads = std::min<std::uint64_t>(kPartsAtOnce, plan.max_parts() * units);
    const auto loaded = static_cast<std::uint32_t>(loads) * vector;
    largest = std::max(largest, loaded + sums + kAddParts);
  }
  return std::min(max_registers(plan),
                  static_cast<std::uint32_t>(ceil_div(largest, kUnit) * kUnit));
}

}  // namespace ptxgen::inline v0::gemv
