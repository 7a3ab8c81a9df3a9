// ptxgen/kernels/gemm/wgmma.hpp - a matrix product by wgmma, from tensor copies
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/gemm/problem.hpp"

namespace ptxgen::inline v0 {

/// The tile of C that a block computes, and the terms of a step: m x n x k.
enum class WgmmaTile : std::uint8_t { t128x256x64, t128x128x64 };

struct WgmmaTileShape {
  std::string_view name;
  std::uint16_t m, n, k;
};
inline constexpr WgmmaTileShape kWgmmaTiles[] = {{"128x256x64", 128, 256, 64},
                                                 {"128x128x64", 128, 128, 64}};
[[nodiscard]] constexpr const WgmmaTileShape& shape_of(WgmmaTile tile) noexcept {
  return kWgmmaTiles[static_cast<std::size_t>(tile)];
}

/// Products by `wgmma` (sm_90a) of f16, bf16 or e4m3 with sums in f32. Of three warpgroups one is
/// the producer: a thread of it fills a ring of `stages` steps by tensor copies, with an mbarrier
/// for the arrival of each step and one for its release; the registers that it does not need go to
/// the others (`setmaxnreg`). Each of the other two computes 64 rows of the tile by
/// `wgmma.m64nNk16`, both operands in shared memory with the 128-byte swizzle, and keeps one group
/// of products in flight: a step is released when the next one has been issued.
///
/// All transpositions are those of the matrix descriptors, which e4m3 does not have. A step outside
/// the matrices is zeros, filled by the tensor copies, so any m, n and k; the terms are added in
/// their order. Needs what tensor maps need: A and B at addresses, with rows and matrices of
/// multiples of 16 bytes.
///
/// With a cluster of two blocks each copies half of the columns of B to both (`multicast`). With
/// `blocks` the grid has that many, each of which computes every `blocks`-th tile, so that the
/// next tile's copies run beside the outputs of the last one.
///
/// With `stream_k` these blocks share the tiles evenly: of those that would leave a last,
/// incomplete wave, and as many more as there are clusters, the steps are divided among the
/// clusters; the other tiles are whole. Sums of divided tiles are added in the order of k, through
/// the workspace, and no block waits for another. Their bits depend on the number of clusters, and
/// on nothing else.
///
/// Entry `gemm_wgmma(c, a, b, bias, residual, workspace, alpha, beta, m, map_a, map_b)`.
struct GemmWgmma {
  static constexpr std::uint32_t kConsumers = 2;  ///< warpgroups that multiply
  static constexpr std::uint32_t kThreads = 128 * (kConsumers + 1);
  /// Rows of tiles whose blocks follow one another and share columns of B in the L2.
  static constexpr std::uint32_t kGroupedTiles = 8;

  GemmProblem problem;
  WgmmaTile tile = WgmmaTile::t128x256x64;
  std::uint32_t stages = 4;   ///< 2 to 6
  std::uint32_t cluster = 1;  ///< blocks that share columns of B: 1 or 2
  /// Blocks of a matrix's grid that compute all of its tiles, a multiple of the cluster; the steps
  /// of a tile are then a multiple of the stages. 0: as many blocks as tiles.
  std::uint32_t blocks = 0;
  bool stream_k = false;  ///< needs `blocks`

  using Operands = GemmOperands;

  [[nodiscard]] constexpr const WgmmaTileShape& shape() const noexcept { return shape_of(tile); }
  /// Terms of a step, 128 bytes: those of the tile, of e4m3 twice as many.
  [[nodiscard]] constexpr std::uint32_t step() const noexcept {
    return problem.type == ElementType::e4m3 ? 2u * shape().k : shape().k;
  }
  [[nodiscard]] constexpr std::uint32_t steps() const noexcept {
    return (problem.k - 1) / step() + 1;
  }
  [[nodiscard]] std::uint32_t shared_bytes() const noexcept;
  /// Of one matrix, with the empty ones that complete the clusters.
  [[nodiscard]] std::uint32_t tiles() const noexcept;

  /// Throws what `check(kernel, target)` throws.
  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept { return detail::gemm_cost(problem); }
};

/// Throws `Error` (Stage::Build): "bad-problem" also for a type, an alignment, a pitch or a stride
/// that tensor maps and wgmma cannot take, "bad-plan" for stages, cluster or blocks, "target-lacks"
/// unless the target is sm_90a and has the shared memory.
void check(const GemmWgmma& kernel, const ptx::Target& target);
/// Whether `check` accepts them.
[[nodiscard]] bool serves(const GemmWgmma& kernel, const ptx::Target& target);

/// The error of sums of `terms` products by wgmma, as a share of the terms' magnitudes: sixteen
/// products and the sum so far are aligned to the largest, cut to 25 bits after its point, added,
/// and the result is cut to f32: seventeen cuts of 2^-25 and one of 2^-23. Source: Microsoft's
/// MMA-Sim, a bit-exact model.
[[nodiscard]] double warpgroup_error(std::uint64_t terms) noexcept;
/// The same of e4m3: 32 products and the sum so far are cut to 13 bits, and so is the result, of
/// what the sum may have been before. Source: MMA-Sim for sm_89; public reports say the same of
/// wgmma.
[[nodiscard]] double warpgroup_eight_bit_error(std::uint64_t terms) noexcept;

namespace detail {

inline constexpr Word<WgmmaTile> kWgmmaTileWords[] = {
    {kWgmmaTiles[0].name, WgmmaTile::t128x256x64}, {kWgmmaTiles[1].name, WgmmaTile::t128x128x64}};
inline constexpr Word<std::uint32_t> kWgmmaClusters[] = {{"1", 1}, {"2", 2}};

/// The maps of A and B: boxes of one step.
[[nodiscard]] TensorMapUse wgmma_map_a(const GemmWgmma& kernel, const GemmOperands& operands);
[[nodiscard]] TensorMapUse wgmma_map_b(const GemmWgmma& kernel, const GemmOperands& operands);

}  // namespace detail

template <>
struct Describe<GemmWgmma> {
  using K = GemmWgmma;
  static constexpr KernelDoc text{
      "gemm_wgmma", "C = act(alpha A B + beta C + bias) + residual on tensor cores by wgmma",
      "bulk: a thread copies boxes of rows of 128 bytes by tensor maps"};
  static constexpr auto parameters = [] {
    auto rows = detail::gemm_parameters_of_one_type<K>(
        choice<&K::tile, detail::kWgmmaTileWords>("tile", "outputs of a block, terms of a step")
            .specializes(),
        number<&K::stages>("stages", 2, 6, "steps in shared memory").specializes(),
        choice<&K::cluster, detail::kWgmmaClusters>("cluster", "blocks that share columns of B")
            .specializes(),
        number<&K::blocks>("blocks", 0, 65534, "blocks that compute all tiles; 0: one for each")
            .specializes(),
        flag<&K::stream_k>("stream_k", "blocks divide the last tiles evenly").specializes(),
        detail::gemm_choice<K, &GemmProblem::c_alignment, kGemmAlignments>(
            "c_align", "bytes that C, bias and residual are aligned to"));
    // The maps have them, not the code.
    for (auto& row : rows) {
      if (row.info.name == "lda" || row.info.name == "ldb") row.info.specializes = false;
    }
    return rows;
  }();
  static constexpr auto arguments = [] {
    using Row = ArgumentRow<K>;
    constexpr auto rows =
        detail::gemm_arguments<K, true>({[](const K&) { return 16u; }, [](const K&) { return 16u; },
                                         [](const K& spec) { return spec.problem.c_alignment; }});
    std::array<Row, rows.size() + 2> all{};
    for (std::size_t i = 0; i < rows.size(); ++i) all[i] = rows[i];
    all[rows.size()] = Row::tensor_map("map_a", detail::wgmma_map_a, "of a");
    all[rows.size() + 1] = Row::tensor_map("map_b", detail::wgmma_map_b, "of b");
    return all;
  }();
  static constexpr bool needs_specific_target = true;
  static void check(const K& spec, const GemmOperands& operands) {
    detail::check_gemm_operands(spec.problem, operands);
  }
  static void check_target(const K& spec, const ptx::Target& target) {
    ptxgen::check(spec, target);
  }
  static KernelKey key(const K& spec);
  static WorkspaceNeed workspace(const K& spec);
  static void reference(const K& spec, HostOperands& host) {
    detail::gemm_reference(spec.problem, host);
  }
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {
      {{.m = 1, .n = 1, .k = 1, .lda = 8, .ldb = 8}, WgmmaTile::t128x128x64},
      {{.m = 17, .n = 33, .k = 65, .lda = 72, .ldb = 40, .ldc = 36}, WgmmaTile::t128x128x64, 2},
      {{.m = 2, .n = 2, .k = 33000, .transpose_b = true}, WgmmaTile::t128x128x64, 6},
      {{.m = 132,
        .n = 260,
        .k = 136,
        .transpose_a = true,
        .transpose_b = true,
        .lda = 136,
        .ldb = 144,
        .scaled = true},
       WgmmaTile::t128x256x64,
       3},
      {{.m = 64,
        .n = 40,
        .k = 48,
        .batch = 2,
        .type = ElementType::bf16,
        .c = ElementType::bf16,
        .transpose_a = true,
        .lda = 72,
        .stride_a = 3456,
        .stride_b = 1920,
        .stride_c = 2600,
        .bias = true,
        .residual = true,
        .activation = GemmActivation::Silu,
        .c_alignment = 2},
       WgmmaTile::t128x128x64},
      {{.m = 200, .n = 264, .k = 128, .c = ElementType::f16, .bias = true},
       WgmmaTile::t128x128x64,
       2,
       2,
       2},
      {{.m = 300, .n = 200, .k = 250, .transpose_b = true, .lda = 256, .ldb = 256},
       WgmmaTile::t128x128x64,
       2,
       1,
       4,
       true},
      {{.m = 600, .n = 40, .k = 500, .lda = 504, .c_alignment = 4},
       WgmmaTile::t128x128x64,
       4,
       2,
       4,
       true}};
};

}  // namespace ptxgen::inline v0
