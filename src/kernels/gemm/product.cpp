// src/kernels/gemm/product.cpp - the product that a kernel of the family computes
#include "kernels/gemm/product.hpp"

#include "ptxgen/kernels/gemm/gemm.hpp"
#include "ptxgen/kernels/gemm/mma.hpp"
#include "ptxgen/kernels/gemm/naive.hpp"
#include "ptxgen/kernels/gemm/tiled.hpp"
#include "ptxgen/kernels/gemm/wgmma.hpp"
#include "ptxgen/kernels/gemm/wmma.hpp"

namespace ptxgen::inline v0::gemm {

namespace {

const GemmProblem* problem_in(const GemmProblem& family) { return &family; }
template <class Kernel>
const GemmProblem* problem_in(const Kernel& kernel) {
  return &kernel.problem;
}

template <class... Kernels>
const GemmProblem* find_problem(const KernelDescription& kernel, const void* spec) {
  const GemmProblem* found = nullptr;
  const auto look = [&]<class Kernel>(const KernelDescription& one, const Kernel*) {
    if (one.name_hash == kernel.name_hash) found = problem_in(*static_cast<const Kernel*>(spec));
  };
  (look(kDescription<Kernels>, static_cast<const Kernels*>(nullptr)), ...);
  return found;
}

}  // namespace

const GemmProblem* product_of(const KernelDescription& kernel, const void* spec) {
  return find_problem<GemmProblem, GemmMma, GemmNaive, GemmTiled, GemmWgmma, GemmWmma>(kernel,
                                                                                       spec);
}

}  // namespace ptxgen::inline v0::gemm
