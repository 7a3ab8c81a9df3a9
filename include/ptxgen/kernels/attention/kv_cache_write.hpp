// ptxgen/kernels/attention/kv_cache_write.hpp - rows of k or v into a cache
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/attention/cache_types.hpp"

namespace ptxgen::inline v0 {

/// Writes row r of x, [row][head][head_size], to position `positions[r]` of the cache,
/// [head][max_seq][head_size]; the heads are those of k and v. Floats are rounded once to the type
/// of the cache; blocks of q8_0 are those of the function `quantize`, and x is then finite.
///
/// Positions are u32 in device memory, so a captured graph can replay with new ones. A row whose
/// position is at or above `max_seq` is not written; of rows with the same position the last one
/// is, so results do not depend on timing. The rest of the cache is unchanged. Entry
/// `kv_cache_write(x, positions, cache, rows, heads, head_size, max_seq)`: x is aligned to an
/// element, to four for q8_0; the cache to an element (a block: to 2 bytes). A warp for each head
/// of a row; the grid's y counts rows by stride.
struct KvCacheWrite {
  std::uint32_t rows = 1;   ///< tokens
  std::uint32_t heads = 8;  ///< of k or v
  std::uint32_t head_size = 128;
  std::uint32_t max_seq = 4096;          ///< positions of the cache
  ElementType type = ElementType::f32;   ///< of x: f32, f16 or bf16
  ElementType cache = ElementType::f16;  ///< f32, f16, bf16 or q8_0

  static constexpr std::uint32_t kThreads = 32;

  struct Operands {
    DeviceRange cache{}, x{}, positions{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// Throws `Error` (Stage::Launch): "empty-grid" if there are no rows, heads or elements,
  /// "bad-parameter" unless heads are whole blocks of the cache.
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads x and the positions, writes as many elements of the cache.
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<KvCacheWrite> {
  using K = KvCacheWrite;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"kv_cache_write",
                                  "cache[h][positions[r]] = x[r][h], where the position is below "
                                  "max_seq; the last row of a position counts",
                                  "coalesced: consecutive lanes on consecutive elements of a head, "
                                  "or on 4 values of blocks"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::rows>("rows", 1, 0x7fffffffu, "rows of x, of one token each"),
      number<&K::heads>("heads", 1, 0x7fffffffu, "heads of k or v"),
      number<&K::head_size>("head_size", 1, 0x7fffffffu, "elements of a head"),
      number<&K::max_seq>("max_seq", 1, 0xffffffffu, "positions of the cache"),
      choice<&K::type, kFloatTypes>("type", "of x").specializes(),
      choice<&K::cache, kCacheTypes>("cache", "type of the cache").specializes()};
  static constexpr auto kElements = [](const K& spec) {
    return std::uint64_t{spec.rows} * spec.heads * spec.head_size;
  };
  static constexpr auto kCache = [](const K& spec) {
    return std::uint64_t{spec.max_seq} * spec.heads * spec.head_size;
  };
  static constexpr auto kAlignment = [](const K& spec) -> std::uint32_t {
    return (spec.cache == ElementType::q8_0 ? 4 : 1) * bytes(spec.type);
  };
  static constexpr Row arguments[] = {
      Row::input("x", &O::x, &K::type, kElements, "rows of k or v").aligned(kAlignment),
      Row::input("positions", &O::positions, ElementType::u32, &K::rows, "of each row")
          .values(0, 40),
      Row::in_out("cache", &O::cache, &K::cache, kCache, "k or v of all positions"),
      Row::shape<&K::rows>("rows"),
      Row::shape<&K::heads>("heads"),
      Row::shape<&K::head_size>("head_size"),
      Row::shape<&K::max_seq>("max_seq")};
  /// Throws as `geometry`.
  static void check(const K& spec, const O&) { static_cast<void>(spec.geometry()); }
  static void reference(const K& spec, HostOperands& host);
  static void host(const K& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const K&) { return {.exact = true}; }
  static constexpr K cases[] = {{1, 1, 1, 1},
                                {1, 8, 128, 48},
                                {17, 3, 64, 33},
                                {5, 1, 80, 40, ElementType::f16, ElementType::f32},
                                {3, 2, 257, 30, ElementType::bf16, ElementType::bf16},
                                {4, 7, 33, 36, ElementType::f32, ElementType::f32},
                                {16, 3, 128, 200, ElementType::f16, ElementType::f16},
                                {1, 1, 32, 40, ElementType::f32, ElementType::q8_0},
                                {17, 3, 96, 32, ElementType::f16, ElementType::q8_0},
                                {70, 2, 256, 41, ElementType::bf16, ElementType::q8_0}};
};

}  // namespace ptxgen::inline v0
