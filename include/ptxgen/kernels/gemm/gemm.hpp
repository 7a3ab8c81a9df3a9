// ptxgen/kernels/gemm/gemm.hpp - the family of matrix products
#pragma once

#include "ptxgen/kernels/gemm/mma.hpp"
#include "ptxgen/kernels/gemm/naive.hpp"
#include "ptxgen/kernels/gemm/tiled.hpp"
#include "ptxgen/kernels/gemm/wgmma.hpp"

namespace ptxgen::inline v0 {

/// A matrix product of any shape. The family chooses: for one row the GEMV of the problem, for up
/// to 64 rows the batched GEMV where it is predicted to be faster (a transposed B in tight rows,
/// nothing but the product), else the fastest plan of `rank_gemm_plans`. Implementations: "auto",
/// "mma", "tiled", "naive", "wgmma", "gemv", "batched_gemv".
template <>
struct Describe<GemmProblem> {
  using P = GemmProblem;
  static constexpr KernelDoc text{
      "gemm", "C = act(alpha A B + beta C + bias) + residual, as planned for the GPU",
      "wide: consecutive lanes copy consecutive 16 bytes of a stored row"};
  static constexpr auto parameters = detail::kGemmParameters;
  static constexpr auto arguments = detail::gemm_arguments<P, true>();
  static void check(const P& problem, const GemmOperands& operands) {
    detail::check_gemm_operands(problem, operands);
  }
  static KernelKey key(const P& problem) { return detail::gemm_key(problem, 0); }
  /// The planner's choice for the target's first GPU of the table.
  static ptx::Module build(const P& problem, const ptx::Target& target);
  static LaunchGeometry geometry(const P& problem, const ptx::Gpu& gpu);
  static KernelCost cost(const P& problem) { return detail::gemm_cost(problem); }
  static void reference(const P& problem, HostOperands& host) {
    detail::gemm_reference(problem, host, detail::min_rounded_b(problem));
  }
  /// Of any kernel of the family.
  static ErrorBound bound(const P& problem);
  static const KernelFamily family;
  static constexpr P cases[] = {
      {.m = 1, .n = 1, .k = 1},
      {.m = 1, .n = 40, .k = 2000, .transpose_b = true, .bias = true},
      {.m = 5, .n = 70, .k = 128, .transpose_b = true},
      {.m = 2, .n = 3, .k = 33000, .type = ElementType::f32, .transpose_b = true, .ldb = 33001},
      {.m = 65, .n = 40, .k = 100, .type = ElementType::bf16, .scaled = true},
      {.m = 20, .n = 30, .k = 24, .batch = 2, .lda = 25, .ldc = 32, .stride_a = 600},
      {.m = 70,
       .n = 50,
       .k = 512,
       .type = ElementType::f32,
       .b = ElementType::q5_k,
       .transpose_b = true},
      {.m = 30, .n = 66, .k = 96, .b = ElementType::q8_0, .transpose_b = true}};
};

}  // namespace ptxgen::inline v0
