// ptxgen/kernels/attention/flash.hpp - attention of many queries, without tensor cores
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/attention/flash_problem.hpp"

namespace ptxgen::inline v0 {

/// The queries of a block and the keys of a step.
enum class FlashTile : std::uint8_t { Auto, t64x64, t64x32, t32x32, t32x16, t16x16 };
struct FlashTileShape {
  std::string_view name;
  std::uint32_t queries = 0, keys = 0;
};
inline constexpr FlashTileShape kFlashTiles[] = {{"auto"},          {"64x64", 64, 64},
                                                 {"64x32", 64, 32}, {"32x32", 32, 32},
                                                 {"32x16", 32, 16}, {"16x16", 16, 16}};

/// Attention in f32 whatever the types of q, k, v and out, which are rounded once where they are
/// stored. A block has the queries of a tile, in shared memory as f32 and times the scale. In each
/// step it loads a tile of keys and values, computes the scores, and adds the weighted values with
/// the online softmax: `m' = max(m, scores)`, what was summed so far times `2^(m - m')`. A thread
/// has 4 queries, every 16th key of the scores and every 16th element of the sums, or vectors of
/// them. Two barriers a step, which all threads reach; steps that no query of the block attends are
/// skipped, by ranges of keys; only steps at an edge of a range test each score.
///
/// Sums are chains of `fma` in the order of elements and keys, so bits depend on the tile, not on
/// the GPU. A NaN in k reaches the queries that attend its key; one in v also those of the same
/// tile that do not, whose weight is 0. `cache` is f32, f16, bf16 or q8_0, whose blocks are along
/// the head (head_size is then a multiple of 32). Alignment in bytes: q, out, k and v 16; k and v
/// of q8_0 2. No bank conflicts in the loop: rows in shared memory are 4 floats longer than a head.
/// Entry `flash_attention(q, k, v, key_lengths, query_lengths, table, out, queries, keys, max_seq,
/// window, pages, scale)`.
struct FlashAttention {
  FlashProblem problem;
  /// Auto: the largest tile whose block fits 64 KiB of shared memory, which every GPU has.
  FlashTile tile = FlashTile::Auto;

  using Operands = FlashOperands;

  [[nodiscard]] const FlashTileShape& shape() const noexcept;
  [[nodiscard]] std::uint32_t threads() const noexcept { return shape().queries * 4; }
  /// Dynamic shared memory of a block, bytes.
  [[nodiscard]] std::uint32_t shared_bytes() const noexcept;

  /// Throws what `check(kernel, target)` throws.
  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept { return detail::flash_cost(problem); }
};

/// Throws `Error` (Stage::Build): "bad-parameter" for values that do not go together,
/// "target-lacks" for more shared memory than a block of the target may have.
void check(const FlashAttention& kernel, const ptx::Target& target);

namespace detail {

inline constexpr auto kFlashTileWords = [] {
  std::array<Word<FlashTile>, std::size(kFlashTiles)> words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = {kFlashTiles[i].name, static_cast<FlashTile>(i)};
  }
  return words;
}();

}  // namespace detail

template <>
struct Describe<FlashAttention> {
  using K = FlashAttention;
  static constexpr KernelDoc text{
      "flash_attention", "out = softmax(scale q K^T) V of many queries, with the online softmax",
      "coalesced: 8 lanes on consecutive 16 bytes of a row of q, k or v"};
  static constexpr auto parameters = detail::flash_parameters<K>(
      choice<&K::tile, detail::kFlashTileWords>("tile", "queries of a block, keys of a step")
          .specializes());
  static constexpr auto arguments = detail::flash_arguments<K>();
  static void check(const K& spec, const FlashOperands& operands) {
    detail::check_flash(spec.problem, text.name);
    detail::check_flash_operands(operands, text.name);
  }
  static void check_target(const K& spec, const ptx::Target& target) {
    ptxgen::check(spec, target);
  }
  static KernelKey key(const K& spec) {
    return detail::flash_key(spec.problem, static_cast<std::uint64_t>(spec.tile));
  }
  static void reference(const K& spec, HostOperands& host);
  static ErrorBound bound(const K&) { return {.relative = 0x1p-24 * 1.01, .absolute = 1e-30}; }
  static constexpr K cases[] = {
      {{.rows = 1, .kv_heads = 1, .head_size = 16, .queries = 1, .keys = 1}},
      {{.kv_heads = 1, .group = 2, .head_size = 32, .queries = 17, .keys = 1100, .max_seq = 2100}},
      {{.rows = 2,
        .kv_heads = 2,
        .group = 2,
        .head_size = 80,
        .queries = 65,
        .keys = 130,
        .type = ElementType::f16,
        .cache = ElementType::f16,
        .causal = false,
        .tokens_first = true}},
      {{.rows = 3,
        .kv_heads = 1,
        .head_size = 64,
        .queries = 70,
        .keys = 150,
        .max_seq = 180,
        .type = ElementType::bf16,
        .cache = ElementType::bf16,
        .window = 50,
        .variable = true},
       FlashTile::t64x64},
      {{.rows = 2,
        .kv_heads = 2,
        .head_size = 128,
        .queries = 33,
        .keys = 40,
        .cache = ElementType::q8_0,
        .shared_cache = true,
        .precise = true}},
      {{.rows = 2,
        .kv_heads = 2,
        .head_size = 48,
        .queries = 20,
        .keys = 90,
        .max_seq = 100,
        .cache = ElementType::f16,
        .page = 16,
        .pages = 20},
       FlashTile::t32x16},
      {{.kv_heads = 1, .head_size = 256, .queries = 18, .keys = 35}}};
};

}  // namespace ptxgen::inline v0
