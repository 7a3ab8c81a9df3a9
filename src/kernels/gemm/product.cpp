// src/kernels/gemm/product.cpp - the product that a kernel of the family computes
#include "kernels/gemm/product.hpp"

#include <type_traits>
#include <variant>

#include "ptxgen/kernels/gemm/gemm.hpp"
#include "ptxgen/kernels/gemm/planner.hpp"
#include "ptxgen/kernels/gemm/wmma.hpp"

namespace ptxgen::inline v0::gemm {

namespace {

const GemmProblem* problem_in(const GemmProblem& family) { return &family; }
template <class Kernel>
const GemmProblem* problem_in(const Kernel& kernel) {
  return &kernel.problem;
}

template <class Kernel>
const GemmProblem* problem_if(const KernelDescription& kernel, const void* spec) {
  if (kernel.name_hash != kDescription<Kernel>.name_hash) return nullptr;
  return problem_in(*static_cast<const Kernel*>(spec));
}

// The kernels that the planner chooses from.
template <class... Kernels>
const GemmProblem* problem_of_planned(std::type_identity<std::variant<Kernels...>>,
                                      const KernelDescription& kernel, const void* spec) {
  const GemmProblem* found = nullptr;
  ((found = problem_if<Kernels>(kernel, spec)) || ...);
  return found;
}

}  // namespace

const GemmProblem* product_of(const KernelDescription& kernel, const void* spec) {
  if (const auto* const found = problem_if<GemmProblem>(kernel, spec)) return found;
  if (const auto* const found = problem_if<GemmWmma>(kernel, spec)) return found;
  return problem_of_planned(std::type_identity<GemmKernel>(), kernel, spec);
}

}  // namespace ptxgen::inline v0::gemm
