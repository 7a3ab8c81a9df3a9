// ptxgen/kernels/attention/rope_kv_write.hpp - q and k rotated, k and v into their caches
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/attention/cache_types.hpp"
#include "ptxgen/kernels/attention/rope.hpp"

namespace ptxgen::inline v0 {

/// What is between the products of a layer and its attention, in one launch: `out` is q rotated by
/// `positions[row]`; k, rotated, and v are written to that position of their caches. With `qk_norm`
/// each head of q and k is first divided by its root mean square and multiplied by the weight of q
/// or k. Bit for bit what `per_head_rmsnorm`, `rope` and `kv_cache_write` do one after the other:
/// computed in f32 and rounded to `type` after each of these steps, then to `cache`.
///
/// q and out are [row][head][head_size], k and v [row][kv_head][head_size] of `type`; out may be q.
/// k and v are not changed. The caches are [row][kv_head][max_seq][head_size]: each row is a
/// sequence. With `shared_cache` all rows are tokens of one sequence, whose caches are
/// [kv_head][max_seq][head_size]; of rows with the same position the last one is then written. A
/// row whose position is at or above `max_seq` is rotated, and not written. The rest of the caches
/// is unchanged. Blocks of q8_0 are those of the function `quantize`, and k and v are then finite.
///
/// One warp for each head of a row, in the order q, k, v: each element is read once. The grid's y
/// counts rows by stride. Entry `rope_kv_write(q, k, v, positions, q_weight, k_weight, factors,
/// out, k_cache, v_cache, rows, heads, kv_heads, max_seq, theta, eps)`; weights, eps and factors
/// are 0 where the options are off. Everything is aligned to an element (a block: to 2 bytes).
struct RopeKvWrite {
  std::uint32_t rows = 1;                ///< tokens
  std::uint32_t heads = 32;              ///< of q
  std::uint32_t kv_heads = 8;            ///< of k and of v
  std::uint32_t head_size = 128;         ///< even, up to 2048; for q8_0 a multiple of 32
  std::uint32_t max_seq = 4096;          ///< positions of a cache
  ElementType type = ElementType::f32;   ///< of q, k, v and out: f32, f16 or bf16
  ElementType cache = ElementType::f16;  ///< f32, f16, bf16 or q8_0
  RopePairs pairs = RopePairs::Interleaved;
  bool qk_norm = false;       ///< heads of q and k are normalised before
  bool factors = false;       ///< frequency factors in device memory
  bool shared_cache = false;  ///< all rows belong to one sequence
  /// As `Rope::precise` and `PerHeadRmsNorm::precise`.
  bool precise = false;

  static constexpr std::uint32_t kThreads = 32;

  struct Operands {
    DeviceRange out{}, k_cache{}, v_cache{}, q{}, k{}, v{}, positions{};
    float theta = 10000.0f;  ///< the base of the frequencies, positive
    DeviceRange factors{};
    DeviceRange q_weight{}, k_weight{};
    float eps = 0;  ///< of `qk_norm`
  };

  /// Throws `Error` (Stage::Launch, "bad-parameter") unless heads are whole blocks of the cache.
  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// Throws as `build`, "empty-grid" if there are no rows.
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads q, k and v once, writes out and as many elements of the caches as k and v have.
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<RopeKvWrite> {
  using K = RopeKvWrite;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr Word<RopePairs> kPairs[] = {{"interleaved", RopePairs::Interleaved},
                                               {"halves", RopePairs::Halves}};
  static constexpr KernelDoc text{
      "rope_kv_write",
      "out = rope(q), k_cache[h][positions[r]] = rope(k[r][h]), v_cache[h][positions[r]] = "
      "v[r][h]; "
      "with qk_norm heads of q and k are normalised before",
      "coalesced: consecutive lanes on consecutive elements of a head, or on 4 values of blocks"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::rows>("rows", 1, 0x7fffffffu, "rows, of one token each"),
      number<&K::heads>("heads", 1, 0x3fffffffu, "heads of q"),
      number<&K::kv_heads>("kv_heads", 1, 0x1fffffffu, "heads of k and of v"),
      number<&K::head_size>("head_size", 2, 2048, "elements of a head")
          .multiple_of(2)
          .specializes(),
      number<&K::max_seq>("max_seq", 1, 0xffffffffu, "positions of a cache"),
      choice<&K::type, kFloatTypes>("type", "of q, k, v and out").specializes(),
      choice<&K::cache, kCacheTypes>("cache", "type of the caches").specializes(),
      choice<&K::pairs, kPairs>("pairs", "elements 2i and 2i + 1, or i and i + head_size / 2")
          .specializes(),
      flag<&K::qk_norm>("qk_norm", "heads of q and k are normalised before").specializes(),
      flag<&K::factors>("factors", "frequency factors in device memory").specializes(),
      flag<&K::shared_cache>("shared_cache", "all rows belong to one sequence").specializes(),
      flag<&K::precise>("precise", "angles in f64, precise sine, cosine, root and division")
          .specializes()};
  static constexpr auto kQueries = [](const K& spec) {
    return std::uint64_t{spec.rows} * spec.heads * spec.head_size;
  };
  static constexpr auto kKeys = [](const K& spec) {
    return std::uint64_t{spec.rows} * spec.kv_heads * spec.head_size;
  };
  static constexpr auto kCacheElements = [](const K& spec) {
    const std::uint64_t sequences = spec.shared_cache ? 1 : spec.rows;
    return sequences * spec.kv_heads * spec.max_seq * spec.head_size;
  };
  static constexpr auto kPairsOfHead = [](const K& spec) {
    return std::uint64_t{spec.head_size} / 2;
  };
  static constexpr auto kNorm = [](const K& spec) { return spec.qk_norm; };
  static constexpr auto kFactors = [](const K& spec) { return spec.factors; };
  static constexpr Row arguments[] = {
      Row::input("q", &O::q, &K::type, kQueries, "queries"),
      Row::input("k", &O::k, &K::type, kKeys, "keys"),
      Row::input("v", &O::v, &K::type, kKeys, "values"),
      Row::input("positions", &O::positions, ElementType::u32, &K::rows, "of each row")
          .values(0, 40),
      Row::input("q_weight", &O::q_weight, ElementType::f32, &K::head_size,
                 "factor of each column of q")
          .only_if(kNorm),
      Row::input("k_weight", &O::k_weight, ElementType::f32, &K::head_size,
                 "factor of each column of k")
          .only_if(kNorm),
      Row::input("factors", &O::factors, ElementType::f32, kPairsOfHead,
                 "divide the frequency of each pair")
          .only_if(kFactors)
          .values(1, 32),
      Row::output("out", &O::out, &K::type, kQueries, "rotated queries").may_alias("q"),
      Row::in_out("k_cache", &O::k_cache, &K::cache, kCacheElements, "keys of all positions"),
      Row::in_out("v_cache", &O::v_cache, &K::cache, kCacheElements, "values of all positions"),
      Row::shape<&K::rows>("rows"),
      Row::shape<&K::heads>("heads"),
      Row::shape<&K::kv_heads>("kv_heads"),
      Row::shape<&K::max_seq>("max_seq"),
      Row::scalar<&O::theta>("theta", "base of the frequencies").values(10000, 1000000),
      Row::scalar<&O::eps>("eps", "added to the mean square; 0 unless qk_norm")
          .only_if(kNorm)
          .values(1e-6, 1e-3)};
  /// Throws as `geometry`; `Error` (Stage::Launch, "arguments") for an eps that the kernel would
  /// ignore.
  static void check(const K& spec, const O& operands);
  static KernelKey key(const K& spec);
  static void reference(const K& spec, HostOperands& host);
  static void host(const K& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {
      {1, 1, 1, 2, 1},
      {1, 9, 3, 64, 48},
      {3, 4, 1, 256, 41, ElementType::f32, ElementType::f16, RopePairs::Halves, true, false, false,
       true},
      {2, 4, 2, 128, 33, ElementType::f16, ElementType::f16, RopePairs::Halves, true},
      {17, 2, 1, 80, 40, ElementType::bf16, ElementType::bf16, RopePairs::Interleaved, false, true,
       true},
      {5, 3, 3, 96, 36, ElementType::f32, ElementType::q8_0, RopePairs::Interleaved, false, false,
       true, true},
      {4, 2, 1, 160, 48, ElementType::f16, ElementType::q8_0, RopePairs::Halves, true, true},
      {2, 3, 2, 50, 41, ElementType::f32, ElementType::f32, RopePairs::Halves, false, true, false,
       true},
      {1, 1, 1, 2048, 41, ElementType::f32, ElementType::bf16, RopePairs::Interleaved, true},
      {70000, 1, 1, 2, 1, ElementType::f32, ElementType::f16}};
};

}  // namespace ptxgen::inline v0
