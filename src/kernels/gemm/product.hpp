// src/kernels/gemm/product.hpp - the product that a kernel of the family computes
#pragma once

#include "ptxgen/kernels/gemm/problem.hpp"

namespace ptxgen::inline v0::gemm {

/// The problem of a spec of that kernel; null if it is no kernel of the family.
[[nodiscard]] const GemmProblem* product_of(const KernelDescription& kernel, const void* spec);

}  // namespace ptxgen::inline v0::gemm
