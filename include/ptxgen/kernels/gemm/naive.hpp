// ptxgen/kernels/gemm/naive.hpp - a matrix product with one thread for each output
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/gemm/problem.hpp"

namespace ptxgen::inline v0 {

/// One thread for each output, which reads its row of A and its column of B: a slow baseline. Sums
/// are one chain of f32 `fma` in the order of k. Blocks of 16 x 16 threads; no shared memory. Entry
/// `gemm_naive(c, a, b, bias, residual, alpha, beta, m)`.
struct GemmNaive {
  GemmProblem problem;

  using Operands = GemmOperands;
  static constexpr std::uint32_t kTile = 16;

  /// Throws `Error` (Stage::Build, "bad-problem").
  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept { return detail::gemm_cost(problem); }
};

template <>
struct Describe<GemmNaive> {
  using K = GemmNaive;
  static constexpr KernelDoc text{
      "gemm_naive", "C = act(alpha A B + beta C + bias) + residual, one thread per output",
      "uncached: consecutive lanes read consecutive columns of B and one element of A"};
  static constexpr auto parameters = detail::gemm_parameters<K>();
  static constexpr auto arguments = detail::gemm_arguments<K>();
  static void check(const K& spec, const GemmOperands& operands) {
    detail::check_gemm_operands(spec.problem, operands);
  }
  static KernelKey key(const K& spec);
  static void reference(const K& spec, HostOperands& host) {
    detail::gemm_reference(spec.problem, host);
  }
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {
      {{.m = 1, .n = 1, .k = 1}},
      {{.m = 17, .n = 33, .k = 65, .lda = 67, .ldb = 40, .ldc = 36}},
      {{.m = 3,
        .n = 20,
        .k = 70000,
        .type = ElementType::f32,
        .transpose_a = true,
        .transpose_b = true,
        .lda = 5,
        .ldb = 70001}},
      {{.m = 5,
        .n = 7,
        .k = 30,
        .batch = 3,
        .type = ElementType::bf16,
        .c = ElementType::bf16,
        .transpose_b = true,
        .stride_a = 151,
        .stride_c = 40,
        .scaled = true,
        .bias = true,
        .residual = true,
        .activation = GemmActivation::Gelu}},
      {{.m = 9, .n = 8, .k = 12, .batch = 2, .stride_b = 100}},
      {{.m = 6, .n = 9, .k = 64, .b = ElementType::q5_1, .transpose_b = true}},
      {{.m = 6, .n = 9, .k = 33, .b = ElementType::f32}}};
};

}  // namespace ptxgen::inline v0
