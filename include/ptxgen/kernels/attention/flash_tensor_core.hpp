// ptxgen/kernels/attention/flash_tensor_core.hpp - attention of many queries by mma.sync
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/attention/flash_problem.hpp"

namespace ptxgen::inline v0 {

/// The queries of a block and the keys of a step, and how many queries each of its 4 warps has.
enum class FlashMmaTile : std::uint8_t { Auto, t128x64, t128x32, t64x64, t64x32 };
struct FlashMmaTileShape {
  std::string_view name;
  std::uint32_t queries = 0, keys = 0;
  [[nodiscard]] constexpr std::uint32_t warp_queries() const noexcept { return queries / 4; }
};
inline constexpr FlashMmaTileShape kFlashMmaTiles[] = {
    {"auto"}, {"128x64", 128, 64}, {"128x32", 128, 32}, {"64x64", 64, 64}, {"64x32", 64, 32}};

/// Attention by `mma.sync.m16n8k16` of f16 or bf16, the type of the cache, with sums in f32. q is
/// rounded to that type, and so are the weights; scores, maxima and sums of weights are f32. A warp
/// keeps the scores of its queries in registers: fragments of sums are fragments of the left factor
/// of the next product. Queries, keys and values are in shared memory, rows 16 bytes longer than a
/// head, so that `ldmatrix` and the copies have no bank conflicts. While a tile of keys and values
/// is used, `cp.async` copies the next one: one barrier a step. On sm_75, which has neither
/// `cp.async` nor bf16 nor m16n8k16, each thread loads and stores, and a product is two of m16n8k8.
///
/// The maximum and the sum are those of the online softmax of `flash_attention`; what was summed is
/// scaled only in steps in which a maximum of the warp rises. NaN as there. Alignment in bytes: q,
/// k, v and out 16.
///
/// With `splits` so many blocks have the same queries, each a part of the keys: few queries of a
/// long cache then fill the GPU. Each block writes maxima, sums and unnormalised outputs to the
/// workspace, and the last one to arrive merges them in the order of the keys. Bits depend on the
/// tile, the splits and the tensor cores, not on the schedule. Entry
/// `flash_attention_tensor_core(q, k, v, key_lengths, query_lengths, table, out, queries, keys,
/// max_seq, window, pages, scale, workspace)`.
struct FlashAttentionTensorCore {
  FlashProblem problem{.type = ElementType::f16, .cache = ElementType::f16};
  /// Auto: 128x64 if it fits 99 KiB of shared memory, which GPUs from sm_80 on have, else 128x32;
  /// for heads of more than 128 elements 64x32, for its registers.
  FlashMmaTile tile = FlashMmaTile::Auto;
  std::uint32_t splits = 1;  ///< blocks of the same queries, 1 to 64

  static constexpr std::uint32_t kThreads = 128;  ///< of a block

  using Operands = FlashOperands;

  [[nodiscard]] const FlashMmaTileShape& shape() const noexcept;
  /// Dynamic shared memory of a block, bytes.
  [[nodiscard]] std::uint32_t shared_bytes() const noexcept;
  /// What a block writes to the workspace, with `splits`.
  [[nodiscard]] std::uint64_t part_bytes() const noexcept;

  /// Throws what `check(kernel, target)` throws.
  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept { return detail::flash_cost(problem); }
};

/// Throws `Error` (Stage::Build): "bad-parameter" for values that do not go together,
/// "target-lacks" for a type or an amount of shared memory that the target does not have.
void check(const FlashAttentionTensorCore& kernel, const ptx::Target& target);

namespace detail {

inline constexpr auto kFlashMmaTileWords = [] {
  std::array<Word<FlashMmaTile>, std::size(kFlashMmaTiles)> words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = {kFlashMmaTiles[i].name, static_cast<FlashMmaTile>(i)};
  }
  return words;
}();

}  // namespace detail

template <>
struct Describe<FlashAttentionTensorCore> {
  using K = FlashAttentionTensorCore;
  static constexpr KernelDoc text{
      "flash_attention_tensor_core",
      "out = softmax(scale q K^T) V of many queries, by mma.sync with the online softmax",
      "wide: 8 lanes copy consecutive 16 bytes of a row of k or v"};
  static constexpr auto parameters = detail::flash_parameters<K>(
      choice<&K::tile, detail::kFlashMmaTileWords>("tile", "queries of a block, keys of a step")
          .specializes(),
      number<&K::splits>("splits", 1, 64, "blocks that share the keys of the same queries")
          .specializes());
  static constexpr auto arguments =
      detail::flash_arguments<K>(std::array{ArgumentRow<K>::workspace()});
  static void check(const K& spec, const FlashOperands& operands) {
    detail::check_flash(spec.problem, text.name);
    detail::check_flash_operands(spec.problem, operands, text.name);
  }
  static void check_target(const K& spec, const ptx::Target& target) {
    ptxgen::check(spec, target);
  }
  static KernelKey key(const K& spec) {
    return detail::flash_key(
        spec.problem, static_cast<std::uint64_t>(spec.tile) << 32 | std::uint64_t{spec.splits});
  }
  static WorkspaceNeed workspace(const K& spec);
  static void reference(const K& spec, HostOperands& host);
  static ErrorBound bound(const K&) { return {.relative = 0x1p-24 * 1.01, .absolute = 1e-30}; }
  static constexpr K cases[] = {{{.rows = 1,
                                  .kv_heads = 1,
                                  .head_size = 16,
                                  .queries = 1,
                                  .keys = 1,
                                  .type = ElementType::f16,
                                  .cache = ElementType::f16}},
                                {{.kv_heads = 1,
                                  .group = 2,
                                  .head_size = 32,
                                  .queries = 17,
                                  .keys = 1100,
                                  .max_seq = 2100,
                                  .type = ElementType::f32,
                                  .cache = ElementType::f16}},
                                {{.rows = 2,
                                  .kv_heads = 2,
                                  .group = 2,
                                  .head_size = 80,
                                  .queries = 65,
                                  .keys = 130,
                                  .type = ElementType::f16,
                                  .cache = ElementType::f16,
                                  .causal = false,
                                  .tokens_first = true},
                                 FlashMmaTile::t64x64},
                                {{.rows = 3,
                                  .kv_heads = 1,
                                  .head_size = 64,
                                  .queries = 70,
                                  .keys = 150,
                                  .max_seq = 180,
                                  .type = ElementType::bf16,
                                  .cache = ElementType::bf16,
                                  .window = 50,
                                  .variable = true}},
                                {{.rows = 2,
                                  .kv_heads = 2,
                                  .head_size = 128,
                                  .queries = 33,
                                  .keys = 100,
                                  .type = ElementType::f16,
                                  .cache = ElementType::f16,
                                  .shared_cache = true,
                                  .precise = true},
                                 FlashMmaTile::t64x32},
                                {{.rows = 2,
                                  .kv_heads = 2,
                                  .head_size = 48,
                                  .queries = 20,
                                  .keys = 90,
                                  .max_seq = 100,
                                  .type = ElementType::f32,
                                  .cache = ElementType::f16,
                                  .page = 16,
                                  .pages = 20}},
                                {{.kv_heads = 1,
                                  .head_size = 256,
                                  .queries = 18,
                                  .keys = 35,
                                  .type = ElementType::f16,
                                  .cache = ElementType::f16}},
                                {{.rows = 2,
                                  .kv_heads = 1,
                                  .group = 2,
                                  .head_size = 64,
                                  .queries = 5,
                                  .keys = 300,
                                  .type = ElementType::f32,
                                  .cache = ElementType::f16,
                                  .variable = true},
                                 FlashMmaTile::t64x64,
                                 3}};
};

}  // namespace ptxgen::inline v0
