// ptxgen/kernels/attention/flash_wgmma.hpp - attention of many queries by wgmma
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/attention/flash_problem.hpp"

namespace ptxgen::inline v0 {

/// The queries of a block and the keys of a step.
enum class FlashWgmmaTile : std::uint8_t { t128x128, t128x64 };
struct FlashWgmmaTileShape {
  std::string_view name;
  std::uint32_t queries = 0, keys = 0;
};
inline constexpr FlashWgmmaTileShape kFlashWgmmaTiles[] = {{"128x128", 128, 128},
                                                           {"128x64", 128, 64}};

/// Attention by `wgmma.m64nNk16` (sm_90a) of f16 or bf16, the type of the cache, with sums in f32.
/// Of three warpgroups one is the producer: a thread of it fills a ring of two steps by tensor
/// copies of keys and values, with an mbarrier for the arrival of each and one for its release; the
/// registers that it does not need go to the others (`setmaxnreg`). Each of the other two has 64
/// queries: it multiplies them, in shared memory, with the keys, and the weights, in registers,
/// with the values. While one of the two computes weights, the other one multiplies.
///
/// Queries, keys and values are in shared memory in rows of 128 bytes with the 128-byte swizzle.
/// Tensor copies fill keys from the last one on with zeros. The maximum and the sum are those of
/// `flash_attention_tensor_core`. NaN as there.
///
/// Limits: head_size 64 or 128; q and out of the type of the cache, or f32, which is rounded to it;
/// neither lengths in device memory (`variable`) nor pages, which tensor maps do not follow.
/// Alignment in bytes: q, k, v and out 16. Entry `flash_attention_wgmma(q, k, v, key_lengths,
/// query_lengths, table, out, queries, keys, max_seq, window, pages, scale, map_k, map_v)`.
struct FlashAttentionWgmma {
  FlashProblem problem{.type = ElementType::f16, .cache = ElementType::f16};
  FlashWgmmaTile tile = FlashWgmmaTile::t128x128;

  static constexpr std::uint32_t kConsumers = 2;  ///< warpgroups that multiply
  static constexpr std::uint32_t kThreads = 128 * (kConsumers + 1);
  static constexpr std::uint32_t kStages = 2;  ///< steps in shared memory

  using Operands = FlashOperands;

  [[nodiscard]] constexpr const FlashWgmmaTileShape& shape() const noexcept {
    return kFlashWgmmaTiles[static_cast<std::size_t>(tile)];
  }
  /// Dynamic shared memory of a block, bytes.
  [[nodiscard]] std::uint32_t shared_bytes() const noexcept;

  /// Throws what `check(kernel, target)` throws.
  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept { return detail::flash_cost(problem); }
};

/// Throws `Error` (Stage::Build): "bad-parameter" for values that do not go together or are not
/// among the limits, "target-lacks" unless the target is sm_90a.
void check(const FlashAttentionWgmma& kernel, const ptx::Target& target);

namespace detail {

inline constexpr Word<FlashWgmmaTile> kFlashWgmmaTileWords[] = {
    {kFlashWgmmaTiles[0].name, FlashWgmmaTile::t128x128},
    {kFlashWgmmaTiles[1].name, FlashWgmmaTile::t128x64}};

/// The maps of k and v: boxes of a step.
[[nodiscard]] TensorMapUse flash_map_k(const FlashAttentionWgmma& kernel,
                                       const FlashOperands& operands);
[[nodiscard]] TensorMapUse flash_map_v(const FlashAttentionWgmma& kernel,
                                       const FlashOperands& operands);

}  // namespace detail

template <>
struct Describe<FlashAttentionWgmma> {
  using K = FlashAttentionWgmma;
  static constexpr KernelDoc text{
      "flash_attention_wgmma",
      "out = softmax(scale q K^T) V of many queries, by wgmma with the online softmax",
      "bulk: a thread copies boxes of rows of 128 bytes of k and v by tensor maps"};
  static constexpr auto parameters = [] {
    constexpr std::size_t kCount =
        detail::kFlashParameters.size() - detail::kFlashParametersInMemory;
    auto rows = detail::flash_parameters<K, kCount>(
        choice<&K::tile, detail::kFlashWgmmaTileWords>("tile", "queries of a block, keys of a step")
            .specializes());
    for (ParameterRow<K>& row : rows) {
      if (row.info.name != "head_size") continue;
      row.info.min = row.info.multiple_of = 64;
      row.info.max = 128;
    }
    return rows;
  }();
  static constexpr auto arguments = detail::flash_arguments<K>(
      std::array{ArgumentRow<K>::tensor_map("map_k", detail::flash_map_k, "of k"),
                 ArgumentRow<K>::tensor_map("map_v", detail::flash_map_v, "of v")});
  static constexpr bool needs_specific_target = true;
  static void check(const K& spec, const FlashOperands& operands) {
    detail::check_flash(spec.problem, text.name);
    detail::check_flash_operands(spec.problem, operands, text.name);
  }
  static void check_target(const K& spec, const ptx::Target& target) {
    ptxgen::check(spec, target);
  }
  static KernelKey key(const K& spec) {
    return detail::flash_key(spec.problem, static_cast<std::uint64_t>(spec.tile));
  }
  static void reference(const K& spec, HostOperands& host);
  static ErrorBound bound(const K&) { return {.relative = 0x1p-24 * 1.01, .absolute = 1e-30}; }
  static constexpr K cases[] = {{{.rows = 1,
                                  .kv_heads = 1,
                                  .head_size = 64,
                                  .queries = 1,
                                  .keys = 1,
                                  .type = ElementType::f16,
                                  .cache = ElementType::f16},
                                 FlashWgmmaTile::t128x64},
                                {{.kv_heads = 1,
                                  .group = 2,
                                  .head_size = 64,
                                  .queries = 17,
                                  .keys = 600,
                                  .max_seq = 700,
                                  .type = ElementType::f32,
                                  .cache = ElementType::f16}},
                                {{.rows = 2,
                                  .kv_heads = 1,
                                  .group = 2,
                                  .head_size = 128,
                                  .queries = 130,
                                  .keys = 70,
                                  .type = ElementType::bf16,
                                  .cache = ElementType::bf16,
                                  .causal = false,
                                  .tokens_first = true}},
                                {{.rows = 2,
                                  .kv_heads = 2,
                                  .head_size = 128,
                                  .queries = 40,
                                  .keys = 150,
                                  .type = ElementType::f16,
                                  .cache = ElementType::f16,
                                  .window = 50,
                                  .shared_cache = true,
                                  .precise = true},
                                 FlashWgmmaTile::t128x64}};
};

}  // namespace ptxgen::inline v0
