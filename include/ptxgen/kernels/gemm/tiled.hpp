// ptxgen/kernels/gemm/tiled.hpp - a matrix product in tiles, without tensor cores
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/gemm/problem.hpp"

namespace ptxgen::inline v0 {

/// A block computes T x T outputs. For each S terms of the sums it loads a tile of A and one of B
/// into shared memory as f32, zeros outside the matrices, between two barriers that all threads
/// reach; a B in blocks is dequantised on the way, exactly. Sums are one chain of f32 `fma` in the
/// order of k, so all tiles give the same bits.
///
/// T = 16 and 32: T x T threads with an output each, S = T. T = 64 and 128: 16 x 16 threads with 4
/// x 4 or 8 x 8 outputs each in registers, S = 32 or 16, for 8 or 16 products to each 16-byte load
/// from shared memory. Shared memory: 2 * T * S * 4 bytes, without bank conflicts: columns are
/// permuted by the number of their row. Entry `gemm_tiled(c, a, b, bias, residual, alpha, beta,
/// m)`.
struct GemmTiled {
  GemmProblem problem;
  std::uint32_t tile = 32;  ///< T: 16, 32, 64 or 128

  using Operands = GemmOperands;

  /// Outputs of a thread in each direction: 1, 4 or 8.
  [[nodiscard]] constexpr std::uint32_t outputs() const noexcept {
    return tile < 64 ? 1 : tile / 16;
  }
  /// S: terms of a step.
  [[nodiscard]] constexpr std::uint32_t terms() const noexcept {
    return tile < 64 ? tile : 2048 / tile;
  }
  [[nodiscard]] constexpr std::uint32_t shared_bytes() const noexcept {
    return 2 * tile * terms() * 4;
  }

  /// Throws `Error` (Stage::Build, "bad-problem").
  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept { return detail::gemm_cost(problem); }
};

inline constexpr Word<std::uint32_t> kGemmSquareTiles[] = {
    {"16", 16}, {"32", 32}, {"64", 64}, {"128", 128}};

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
      {{.m = 9, .n = 8, .k = 12, .batch = 2, .transpose_a = true, .lda = 20, .stride_b = 100}, 16},
      {{.m = 70, .n = 65, .k = 67, .type = ElementType::f32, .lda = 71, .bias = true}, 64},
      {{.m = 100, .n = 130, .k = 40, .transpose_a = true, .transpose_b = true, .lda = 104}, 128},
      {{.m = 20,
        .n = 33,
        .k = 64,
        .type = ElementType::f32,
        .b = ElementType::q4_0,
        .transpose_b = true},
       32},
      {{.m = 70,
        .n = 130,
        .k = 512,
        .type = ElementType::f32,
        .b = ElementType::q6_k,
        .transpose_b = true},
       64},
      {{.m = 40,
        .n = 140,
        .k = 256,
        .batch = 2,
        .type = ElementType::f32,
        .b = ElementType::q4_k,
        .transpose_b = true,
        .ldb = 512,
        .stride_b = 71680},
       128}};
};

}  // namespace ptxgen::inline v0
