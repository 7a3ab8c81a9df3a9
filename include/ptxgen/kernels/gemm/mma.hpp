// ptxgen/kernels/gemm/mma.hpp - a matrix product on tensor cores by mma.sync
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/gemm/problem.hpp"

namespace ptxgen::inline v0 {

/// The tile of C that a block computes, and the terms of a step: m x n x k.
enum class GemmTile : std::uint8_t {
  t256x128x32,
  t128x128x32,
  t128x128x32w8,  ///< by 8 warps instead of 4
  t128x64x32,
  t64x64x32,
  t32x32x32,
  t16x64x32,
};

/// What a tile is divided into. A warp computes `m / warps_m` x `n / warps_n` outputs.
struct GemmTileShape {
  std::string_view name;
  std::uint16_t m, n, k, warps_m, warps_n;
  std::uint16_t blocks_per_sm;  ///< for which registers are left
  [[nodiscard]] constexpr std::uint32_t threads() const noexcept { return 32u * warps_m * warps_n; }
  [[nodiscard]] constexpr std::uint32_t warp_m() const noexcept { return m / warps_m; }
  [[nodiscard]] constexpr std::uint32_t warp_n() const noexcept { return n / warps_n; }
};
inline constexpr GemmTileShape kGemmTiles[] = {
    {"256x128x32", 256, 128, 32, 4, 2, 1},   {"128x128x32", 128, 128, 32, 2, 2, 2},
    {"128x128x32w8", 128, 128, 32, 2, 4, 1}, {"128x64x32", 128, 64, 32, 2, 2, 3},
    {"64x64x32", 64, 64, 32, 2, 2, 4},       {"32x32x32", 32, 32, 32, 2, 2, 6},
    {"16x64x32", 16, 64, 32, 1, 2, 8}};
[[nodiscard]] constexpr const GemmTileShape& shape_of(GemmTile tile) noexcept {
  return kGemmTiles[static_cast<std::size_t>(tile)];
}

/// Products by `mma.sync.m16n8k16` of f16 or bf16, or `m16n8k32` of e4m3, with sums in f32. A ring
/// of `stages` steps in shared memory is filled by `cp.async` of 16, 8 or 4 bytes, `stages - 1`
/// steps ahead, with one barrier a step; where rows are aligned to 2 bytes only, and on sm_75, each
/// thread loads and stores instead. Elements outside the matrices are zeros. Fragments are loaded
/// by `ldmatrix`, with `.trans` for a transposed A and a B that is not. The 16 bytes of a row are
/// permuted by the number of the row, so neither the copies of 16 bytes nor `ldmatrix` have bank
/// conflicts.
///
/// A B of another type than A is loaded by each thread, eight adjacent terms at a time, dequantised
/// exactly, rounded to the type of A, and stored to the same place. A is f16 or bf16 then, B
/// `[n x k]`, and k a multiple of 32.
///
/// The terms of a sum are added in steps of 32, the last, incomplete step first; its bits depend on
/// the tensor core (`gemm_bound`), not on tile and stages. Each warp passes its outputs through
/// shared memory, so that lanes store neighbours. Blocks are numbered in groups of 8 rows of tiles,
/// which share columns of B in the L2. sm_75 has no bf16.
///
/// With several `splits` each block has an equal number of steps and stores its sums, as f32, to
/// the workspace; the last block of a tile to arrive adds them in the order of k. So the same plan
/// gives the same bits in every run.
///
/// With `blocks` (stream-K) the grid has that many for each matrix, and none waits for another: of
/// the tiles that would leave a last, incomplete wave, and as many more as there are blocks, the
/// steps are divided evenly, in runs of `stages` steps; the other tiles are whole, one after
/// another. Sums of divided tiles are added in the order of k, through the workspace, so their bits
/// depend on the number of blocks, and on nothing else. Entry `gemm_mma(c, a, b, bias, residual,
/// workspace, alpha, beta, m)`.
struct GemmMma {
  /// Rows of tiles whose blocks follow one another and share columns of B in the L2.
  static constexpr std::uint32_t kGroupedTiles = 8;
  static constexpr std::uint32_t kMaxBlocks = 4096;

  GemmProblem problem;
  GemmTile tile = GemmTile::t128x128x32;
  std::uint32_t stages = 3;  ///< 2 to 5; code for sm_75 uses 2
  /// Blocks that share the terms of a tile, the grid's y: they divide the steps, which are
  /// complete.
  std::uint32_t splits = 1;
  /// Blocks of a matrix's grid that share all of its tiles; k is then a multiple of the terms of
  /// all stages. 0: one for each tile and split.
  std::uint32_t blocks = 0;

  using Operands = GemmOperands;

  [[nodiscard]] constexpr const GemmTileShape& shape() const noexcept { return shape_of(tile); }
  /// Terms of a step: those of the tile, of e4m3 twice as many.
  [[nodiscard]] constexpr std::uint32_t step() const noexcept {
    return problem.type == ElementType::e4m3 ? 2u * shape().k : shape().k;
  }
  /// Bytes of a copy to shared memory: 16, 8, 4 or 2 (of e4m3 also 1), as alignment, pitch and
  /// stride allow.
  [[nodiscard]] std::uint32_t load_bytes_a() const noexcept;
  [[nodiscard]] std::uint32_t load_bytes_b() const noexcept;
  /// Of its address, in bytes; blocks need no more than their own.
  [[nodiscard]] constexpr std::uint32_t alignment_b() const noexcept {
    return info(problem.type_b()).block_values == 1 ? problem.alignment : 1;
  }
  /// Whether B has another type than A.
  [[nodiscard]] constexpr bool converts_b() const noexcept {
    return problem.type_b() != problem.type;
  }
  [[nodiscard]] std::uint32_t shared_bytes() const noexcept;
  /// Tiles of all matrices.
  [[nodiscard]] std::uint64_t tiles() const noexcept;

  /// Throws what `check(kernel, target)` throws.
  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept { return detail::gemm_cost(problem); }
};

/// Throws `Error` (Stage::Build): "bad-problem", "bad-plan" for stages or a type that the kernel
/// does not have, "target-lacks" for a type or an amount of shared memory that the target does not
/// have.
void check(const GemmMma& kernel, const ptx::Target& target);

/// The error of sums of `terms` products on tensor cores, as a share of the terms' magnitudes.
/// Eight products and the sum so far are aligned to the largest, cut to 24 bits after its point,
/// added, and the result is cut to f32 (sm_80 to sm_89; sm_90 adds 16 and keeps 25 bits, which is
/// less): nine cuts of 2^-24 and one of 2^-23. Source: Microsoft's MMA-Sim, a bit-exact model.
[[nodiscard]] double tensor_core_error(std::uint64_t terms) noexcept;
/// The same of products of e4m3, whose sums have 13 bits after the point: of 16 products and the
/// sum so far, and of the result (sm_89; wgmma of sm_90a adds 32, mma.sync there keeps more).
/// Source: MMA-Sim.
[[nodiscard]] double eight_bit_error(std::uint64_t terms) noexcept;

namespace detail {

inline constexpr auto kGemmTileWords = [] {
  std::array<Word<GemmTile>, std::size(kGemmTiles)> words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = {kGemmTiles[i].name, static_cast<GemmTile>(i)};
  }
  return words;
}();

}  // namespace detail

template <>
struct Describe<GemmMma> {
  using K = GemmMma;
  static constexpr KernelDoc text{
      "gemm_mma", "C = act(alpha A B + beta C + bias) + residual on tensor cores by mma.sync",
      "wide: consecutive lanes copy consecutive 16 bytes of a stored row"};
  static constexpr auto parameters = detail::gemm_parameters<K>(
      choice<&K::tile, detail::kGemmTileWords>("tile", "outputs of a block, terms of a step")
          .specializes(),
      number<&K::stages>("stages", 2, 5, "steps in shared memory").specializes(),
      number<&K::splits>("splits", 1, 64, "blocks that share the terms of a tile").specializes(),
      number<&K::blocks>("blocks", 0, K::kMaxBlocks, "blocks that share all tiles; 0: one for each")
          .specializes(),
      detail::gemm_choice<K, &GemmProblem::alignment, kGemmAlignments>(
          "align", "bytes that A and B are aligned to"),
      detail::gemm_choice<K, &GemmProblem::c_alignment, kGemmAlignments>(
          "c_align", "bytes that C, bias and residual are aligned to"));
  static constexpr auto arguments =
      detail::gemm_arguments<K, true>({[](const K& spec) { return spec.problem.alignment; },
                                       [](const K& spec) { return spec.alignment_b(); },
                                       [](const K& spec) { return spec.problem.c_alignment; }});
  static void check(const K& spec, const GemmOperands& operands) {
    detail::check_gemm_operands(spec.problem, operands);
  }
  static void check_target(const K& spec, const ptx::Target& target) {
    ptxgen::check(spec, target);
  }
  static KernelKey key(const K& spec);
  static WorkspaceNeed workspace(const K& spec);
  static void reference(const K& spec, HostOperands& host) {
    detail::gemm_reference(spec.problem, host, detail::min_rounded_b(spec.problem));
  }
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {
      {{.m = 1, .n = 1, .k = 1}, GemmTile::t32x32x32},
      {{.m = 17, .n = 33, .k = 65, .lda = 72, .ldb = 40, .ldc = 36}, GemmTile::t64x64x32},
      {{.m = 2, .n = 2, .k = 33000, .transpose_b = true}, GemmTile::t16x64x32, 4},
      {{.m = 100,
        .n = 72,
        .k = 80,
        .transpose_a = true,
        .transpose_b = true,
        .lda = 104,
        .scaled = true},
       GemmTile::t128x64x32,
       2},
      {{.m = 33,
        .n = 31,
        .k = 47,
        .batch = 2,
        .type = ElementType::bf16,
        .c = ElementType::bf16,
        .transpose_a = true,
        .lda = 33,
        .stride_a = 1551,
        .stride_c = 1024,
        .bias = true,
        .residual = true,
        .activation = GemmActivation::Silu,
        .alignment = 2,
        .c_alignment = 2},
       GemmTile::t32x32x32},
      {{.m = 130, .n = 120, .k = 70, .batch = 2, .c = ElementType::f16, .stride_b = 8400},
       GemmTile::t128x128x32,
       5},
      {{.m = 70, .n = 50, .k = 192, .bias = true}, GemmTile::t32x32x32, 2, 3},
      {{.m = 70, .n = 50, .k = 192, .batch = 2, .stride_a = 13440, .residual = true},
       GemmTile::t32x32x32,
       2,
       1,
       4},
      {{.m = 70, .n = 50, .k = 256, .b = ElementType::q4_k, .transpose_b = true},
       GemmTile::t64x64x32},
      {{.m = 40,
        .n = 130,
        .k = 192,
        .batch = 2,
        .type = ElementType::bf16,
        .b = ElementType::q4_1,
        .transpose_a = true,
        .transpose_b = true,
        .lda = 40,
        .stride_b = 24960,
        .alignment = 4},
       GemmTile::t128x128x32,
       2,
       3}};
};

}  // namespace ptxgen::inline v0
