// ptxgen/kernels/gemm/tiled.hpp - a matrix product in tiles, without tensor cores
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/gemm/problem.hpp"

namespace ptxgen::inline v0 {

/// A block of T x T threads computes T x T outputs. For each T terms of the sums it loads a tile of
/// A and one of B into shared memory as f32, zeros outside the matrices, between two barriers that
/// all threads reach. Sums are one chain of f32 `fma` in the order of k. Shared memory: 2 * T * T *
/// 4 bytes, without bank conflicts: a tile that is transposed as it is stored has its columns
/// permuted by the number of their row. Entry `gemm_tiled(c, a, b, bias, residual, alpha, beta,
/// m)`.
struct GemmTiled {
  GemmProblem problem;
  std::uint32_t tile = 32;  ///< T: 16 or 32

  using Operands = GemmOperands;

  /// Throws `Error` (Stage::Build, "bad-problem").
  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept { return detail::gemm_cost(problem); }
};

inline constexpr Word<std::uint32_t> kGemmSquareTiles[] = {{"16", 16}, {"32", 32}};

template <>
struct Describe<GemmTiled> {
  using K = GemmTiled;
  static constexpr KernelDoc text{
      "gemm_tiled", "C = act(alpha A B + beta C + bias) + residual, f32 tiles in shared memory",
      "coalesced: consecutive lanes load consecutive elements of a stored row"};
  static constexpr auto parameters = detail::gemm_parameters<K>(
      choice<&K::tile, kGemmSquareTiles>("tile", "rows and columns of a block").specializes());
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
      {{.m = 2, .n = 2, .k = 33000, .type = ElementType::f32, .transpose_b = true}, 16},
      {{.m = 40,
        .n = 20,
        .k = 33,
        .type = ElementType::f32,
        .transpose_a = true,
        .transpose_b = true,
        .lda = 41,
        .scaled = true}},
      {{.m = 5,
        .n = 7,
        .k = 30,
        .batch = 3,
        .type = ElementType::bf16,
        .c = ElementType::bf16,
        .transpose_b = true,
        .stride_a = 151,
        .stride_c = 40,
        .bias = true,
        .residual = true,
        .activation = GemmActivation::Silu},
       16},
      {{.m = 9, .n = 8, .k = 12, .batch = 2, .transpose_a = true, .lda = 20, .stride_b = 100}, 16}};
};

}  // namespace ptxgen::inline v0
