// src/kernels/gemv/catalog_gemv.cpp - the planned GEMV in the catalog
#include "kernels/gemv/catalog_gemv.hpp"

#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"

namespace ptxgen::inline v0 {

GemvProblem gemv_problem_of(std::span<const std::uint64_t> values) {
  check_values(Gemv::kName, kGemvParameters, values);
  GemvProblem problem;
  problem.k = static_cast<std::uint32_t>(values[0]);
  problem.n = static_cast<std::uint32_t>(values[1]);
  problem.layout = static_cast<GemvLayout>(values[2]);
  problem.weights = static_cast<GemvType>(values[3]);
  return problem;
}

Gemv gemv_of(std::span<const std::uint64_t> values, const ptx::Target& target) {
  return {plan_gemv(gemv_problem_of(values), emulator::default_gpu(target.name))};
}

KernelCost gemv_cost_of(std::span<const std::uint64_t> values) {
  GemvPlan plan;
  plan.problem = gemv_problem_of(values);
  return Gemv{plan}.cost();
}

}  // namespace ptxgen::inline v0
