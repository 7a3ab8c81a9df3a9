// ptxgen/kernels/attention/decode.hpp - attention of one query token over a KV cache
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/attention/cache_types.hpp"

namespace ptxgen::inline v0 {

/// For each row (a sequence) and query head h:
/// `out[row][h] = sum over i of p_i v[i]` with `p = softmax over i of s_i`,
/// `s_i = scale * (q[row][h] . k[i])`, and with `softcap` `cap * tanh(s_i / cap)` in place of s_i.
/// Positions i are those from `max(0, length - window)` to `length - 1`, `length` being
/// `min(lengths[row], max_seq)`; a window of 0 is no limit. Lengths are in device memory, so a
/// captured graph replays with new ones; positions that do not count are not read. A row of length
/// 0, or whose scores are all -inf, gives exactly 0.
///
/// q and out are [row][head][head_size] of `type`; k and v [row][kv_head][max_seq][head_size] of
/// `cache`, without the rows if `shared_cache`. Query head h uses K/V head h / `group`. `cache` is
/// f32, f16, bf16 or q8_0, whose blocks are along the head (head_size is then a multiple of 32).
/// Alignment in bytes: k and v 16, or 2 for q8_0; q and out four elements.
///
/// Scores and sums are f32 with the online softmax; out is rounded once. A block handles `chunk`
/// positions of all query heads of one K/V head, which reads each byte of k and v once: grid
/// (chunks, kv_heads * parts_of_group(), rows) of 128 threads. With several chunks
/// each block writes its maximum, sum and unnormalised output to the workspace, and the last one to
/// arrive merges them in an order that depends on their indices alone. The bits of a result depend
/// on `chunk` (and the types and sizes), not on the GPU or the schedule. Blocks whose chunk is
/// beyond the length end at once.
///
/// Entry `attention_decode(q, k, v, lengths, out, workspace, rows, kv_heads, max_seq, window,
/// chunk, scale, cap)`.
struct AttentionDecode {
  std::uint32_t rows = 1;                ///< sequences, one query token each: the grid's z
  std::uint32_t kv_heads = 8;            ///< heads of k and v: the grid's y
  std::uint32_t group = 1;               ///< query heads for each: 1 to 8 (6), or halves to that
  std::uint32_t head_size = 128;         ///< 16 to 256, a multiple of 16, of 32 for q8_0
  std::uint32_t max_seq = 4096;          ///< positions that the cache holds
  ElementType type = ElementType::f32;   ///< of q and out: f32, f16 or bf16
  ElementType cache = ElementType::f32;  ///< of k and v: f32, f16, bf16 or q8_0
  std::uint32_t window = 0;              ///< the last positions that count; 0: all
  std::uint32_t chunk = 0;               ///< positions of a block; 0: `attention_chunk` for 132 SMs
  bool softcap = false;                  ///< cap * tanh(s / cap), always with the precise tanh
  bool shared_cache = false;             ///< all rows use the same k and v
  bool precise = false;                  ///< the precise exp2 and `div.rn`

  static constexpr std::uint32_t kThreads = 128;  ///< of a block

  struct Operands {
    DeviceRange out{}, q{}, k{}, v{}, lengths{};
    float scale = 0;  ///< 0: 1 / sqrt(head_size)
    float cap = 0;    ///< positive; only with `softcap`
  };

  /// Blocks that share the query heads of a K/V head, because the registers of one hold 8 (6 if
  /// head_size > 128): 1, 2 or 4. Each reads k and v.
  [[nodiscard]] constexpr std::uint32_t parts_of_group() const noexcept {
    std::uint32_t parts = 1;
    while (group / parts > (head_size <= 128 ? 8 : 6) && group / parts % 2 == 0) parts *= 2;
    return parts;
  }
  [[nodiscard]] constexpr std::uint32_t block_heads() const noexcept {
    return group / parts_of_group();
  }
  /// Blocks for each chunk of a row: the grid's y.
  [[nodiscard]] constexpr std::uint32_t strips_of_row() const noexcept {
    return kv_heads * parts_of_group();
  }
  /// Query heads.
  [[nodiscard]] constexpr std::uint64_t heads() const noexcept {
    return std::uint64_t{kv_heads} * group;
  }
  /// Positions that may count: of the window, if there is one.
  [[nodiscard]] constexpr std::uint32_t positions() const noexcept {
    return window == 0 || window > max_seq ? max_seq : window;
  }
  /// `chunk`, or the default for it; at most `positions()`.
  [[nodiscard]] std::uint32_t chunk_positions() const noexcept;
  [[nodiscard]] std::uint32_t chunks() const noexcept;
  /// Values of k or v.
  [[nodiscard]] constexpr std::uint64_t cache_values() const noexcept {
    return std::uint64_t{shared_cache ? 1 : rows} * kv_heads * max_seq * head_size;
  }

  /// Throws `Error` (Stage::Build, "bad-parameter") for a group or a head size that does not go
  /// with the other parameters.
  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// rows, kv_heads or max_seq = 0 throws `Error` (Stage::Launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Of rows that are `positions()` long.
  [[nodiscard]] KernelCost cost() const noexcept;
};

/// The chunk for a GPU of `sms` multiprocessors: long caches are divided until there are about four
/// blocks for each, into at most 64 chunks of 64 KiB of k and v or more; short ones stay one block.
/// A number of positions that a block handles without remainder. `spec.chunk` is ignored.
[[nodiscard]] std::uint32_t attention_chunk(const AttentionDecode& spec,
                                            std::uint32_t sms) noexcept;

template <>
struct Describe<AttentionDecode> {
  using K = AttentionDecode;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{
      "attention_decode",
      "out = softmax(scale q K^T) V of one query token per row, over a KV cache",
      "coalesced: lanes of a team on consecutive 16 bytes of a position, each position read once"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::rows>("rows", 1, 65535, "rows of one query token each"),
      number<&K::kv_heads>("kv_heads", 1, 16383, "heads of k and v"),
      number<&K::group>("group", 1, 16, "query heads for each head of k and v").specializes(),
      number<&K::head_size>("head_size", 16, 256, "elements of a head")
          .multiple_of(16)
          .specializes(),
      number<&K::max_seq>("max_seq", 1, 1u << 30, "positions of the cache"),
      choice<&K::type, kFloatTypes>("type", "of q and out").specializes(),
      choice<&K::cache, kCacheTypes>("cache", "type of k and v").specializes(),
      number<&K::window>("window", 0, 1u << 30, "last positions that count; 0: all"),
      number<&K::chunk>("chunk", 0, 1u << 30, "positions of a block; 0: the default"),
      flag<&K::softcap>("softcap", "cap * tanh(s / cap)").specializes(),
      flag<&K::shared_cache>("shared_cache", "all rows use the same k and v").specializes(),
      flag<&K::precise>("precise", "precise exp2 and division").specializes()};
  static constexpr auto kElements = [](const K& spec) {
    return spec.rows * spec.heads() * spec.head_size;
  };
  static constexpr auto kCacheElements = [](const K& spec) { return spec.cache_values(); };
  static constexpr auto kAlignment = [](const K& spec) -> std::uint32_t {
    return 4 * bytes(spec.type);
  };
  static constexpr auto kCacheAlignment = [](const K& spec) -> std::uint32_t {
    return spec.cache == ElementType::q8_0 ? 2 : 16;
  };
  static constexpr auto kSoftcap = [](const K& spec) { return spec.softcap; };
  // The kernel takes the positions that 0 means.
  static constexpr auto kChunk = [] {
    Row row = Row::shape<&K::chunk>("chunk");
    row.bits = [](const K& spec, const O&) { return std::uint64_t{spec.chunk_positions()}; };
    return row;
  }();
  static constexpr Row arguments[] = {
      Row::input("q", &O::q, &K::type, kElements, "queries").aligned(kAlignment),
      Row::input("k", &O::k, &K::cache, kCacheElements, "keys").aligned(kCacheAlignment),
      Row::input("v", &O::v, &K::cache, kCacheElements, "values").aligned(kCacheAlignment),
      Row::input("lengths", &O::lengths, ElementType::u32, &K::rows,
                 "valid positions of each row; more than max_seq counts as max_seq")
          .values(0, 400),
      Row::output("out", &O::out, &K::type, kElements, "weighted means of the values")
          .aligned(kAlignment),
      Row::workspace(),
      Row::shape<&K::rows>("rows"),
      Row::shape<&K::kv_heads>("kv_heads"),
      Row::shape<&K::max_seq>("max_seq"),
      Row::shape<&K::window>("window"),
      kChunk,
      Row::scalar<&O::scale>("scale", "of the scores; 0: 1 / sqrt(head_size)").values(0.05, 0.3),
      Row::scalar<&O::cap>("cap", "of the scores; 0 unless softcap")
          .only_if(kSoftcap)
          .values(1, 30)};
  /// Throws `Error` (Stage::Launch, "arguments") for a cap that is not positive, or that the kernel
  /// would ignore.
  static void check(const K& spec, const O& operands);
  static KernelKey key(const K& spec);
  static WorkspaceNeed workspace(const K& spec);
  static constexpr KernelBatch batch{BatchStrategy::GridZ, "rows"};
  static K twin(K spec) {
    spec.rows = 1;
    return spec;
  }
  static K for_layer(K spec, const LayerSizes& sizes) {
    spec.kv_heads = sizes.kv_heads;
    spec.group = sizes.heads / sizes.kv_heads;
    spec.head_size = sizes.head_size;
    spec.max_seq = sizes.positions;
    spec.chunk = spec.chunk_positions();  // which otherwise depends on the rows
    return spec;
  }
  static void reference(const K& spec, HostOperands& host);
  static void host(const K& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {
      {1, 1, 1, 16, 1},
      {1, 2, 1, 32, 400, ElementType::f16, ElementType::q8_0},
      {3, 2, 4, 128, 300, ElementType::f32, ElementType::f16, 0, 64},
      {2, 1, 6, 128, 300, ElementType::bf16, ElementType::bf16, 100},
      {2, 2, 2, 64, 500, ElementType::f32, ElementType::q8_0, 0, 96, true},
      {4, 1, 4, 80, 333, ElementType::f16, ElementType::f16, 0, 100, false, true},
      {1, 1, 8, 256, 350, ElementType::f32, ElementType::f32, 0, 50, false, false, true},
      {2, 3, 2, 96, 400, ElementType::f32, ElementType::q8_0, 150, 40, true, true, true},
      {1, 1, 16, 128, 200, ElementType::bf16, ElementType::f16, 0, 128}};
};

}  // namespace ptxgen::inline v0
