// ptxgen/kernels/gemm/wmma.hpp - a matrix product by wmma
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/gemm/mma.hpp"

namespace ptxgen::inline v0 {

/// Products by `wmma.mma.m16n16k16` of f16 or bf16 with sums in f32. A block of `(T / 16)^2` warps
/// computes T x T outputs, each warp 16 x 16. For each T terms all threads copy a tile of A and one
/// of B to shared memory as they are stored, zeros outside the matrices, between two barriers that
/// every thread reaches; fragments are loaded by `wmma.load` in row or column order, as the matrix
/// is transposed or not. Sums go through the same shared memory to the epilogue. Shared memory: 2 *
/// T * T * 2 bytes. Plain and slow; `gemm_mma` is the fast one. sm_75 has no bf16. Entry
/// `gemm_wmma(c, a, b, bias, residual, alpha, beta, m)`.
struct GemmWmma {
  GemmProblem problem;
  std::uint32_t tile = 32;  ///< T: 16, 32 or 64

  using Operands = GemmOperands;

  [[nodiscard]] constexpr std::uint32_t threads() const noexcept {
    return 32 * (tile / 16) * (tile / 16);
  }
  /// Throws what `check(kernel, target)` throws.
  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept { return detail::gemm_cost(problem); }
};

/// Throws `Error` (Stage::Build): "bad-problem", "bad-plan" for a type that the kernel does not
/// have, "target-lacks" for one that the target does not have.
void check(const GemmWmma& kernel, const ptx::Target& target);

inline constexpr Word<std::uint32_t> kGemmWmmaTiles[] = {{"16", 16}, {"32", 32}, {"64", 64}};

template <>
struct Describe<GemmWmma> {
  using K = GemmWmma;
  static constexpr KernelDoc text{
      "gemm_wmma", "C = act(alpha A B + beta C + bias) + residual by wmma, a warp for 16 x 16",
      "coalesced: consecutive lanes load consecutive elements of a stored row"};
  static constexpr auto parameters = detail::gemm_parameters_of_one_type<K>(
      choice<&K::tile, kGemmWmmaTiles>("tile", "rows and columns of a block").specializes());
  static constexpr auto arguments = detail::gemm_arguments<K>();
  static void check(const K& spec, const GemmOperands& operands) {
    detail::check_gemm_operands(spec.problem, operands);
  }
  static void check_target(const K& spec, const ptx::Target& target) {
    ptxgen::check(spec, target);
  }
  static KernelKey key(const K& spec);
  static void reference(const K& spec, HostOperands& host) {
    detail::gemm_reference(spec.problem, host);
  }
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {
      {{.m = 1, .n = 1, .k = 1}, 16},
      {{.m = 17, .n = 33, .k = 65, .lda = 67, .ldb = 40, .ldc = 36}},
      {{.m = 2, .n = 2, .k = 33000, .transpose_b = true}, 16},
      {{.m = 40,
        .n = 20,
        .k = 33,
        .type = ElementType::bf16,
        .transpose_a = true,
        .transpose_b = true,
        .lda = 41,
        .scaled = true,
        .activation = GemmActivation::Silu}},
      {{.m = 5,
        .n = 7,
        .k = 30,
        .batch = 3,
        .c = ElementType::f16,
        .transpose_b = true,
        .stride_a = 151,
        .stride_c = 40,
        .bias = true,
        .residual = true},
       64},
      {{.m = 9, .n = 8, .k = 12, .batch = 2, .transpose_a = true, .lda = 20, .stride_b = 100}, 16}};
};

}  // namespace ptxgen::inline v0
