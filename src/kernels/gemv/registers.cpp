// src/kernels/gemv/registers.cpp - registers of a GEMV kernel
#include <algorithm>

#include "kernels/gemv/model.hpp"
#include "kernels/gemv/partition.hpp"

namespace ptxgen::inline v0::gemv {

std::uint32_t registers(const GemvPlan& plan) noexcept {
  const std::uint32_t lane = lane_elements(plan);
  const std::uint32_t loads = std::max(1u, plan.load_bytes / 4) * plan.unroll * plan.rows;
  const std::uint32_t sums = plan.problem.layout == GemvLayout::T ? lane : plan.rows;
  return std::min(255u, (28 + loads + sums + 7) / 8 * 8);
}

}  // namespace ptxgen::inline v0::gemv
