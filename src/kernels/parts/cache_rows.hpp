// src/kernels/parts/cache_rows.hpp - a warp writes heads to a KV cache
#pragma once

#include "kernels/parts/block_vote.hpp"
#include "kernels/parts/quantized_lanes.hpp"
#include "kernels/parts/words.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"

namespace ptxgen::inline v0 {

/// Of a block that writes heads: a warp.
inline constexpr std::uint32_t kCacheThreads = 32;

/// A head's position in the cache, for a warp. In a kernel without contraction.
struct CacheHead {
  KernelBuilder& k;
  ElementType cache;
  Ptr<b8> to;
  Value<u32> lane, size;

  /// Bytes of a head of `size` elements.
  [[nodiscard]] static Value<u64> bytes_of(KernelBuilder& k, ElementType cache,
                                           const Value<u32>& size) {
    return is_block_format(cache) ? k.mul_wide(size >> 5u, bytes(cache))
                                  : k.mul_wide(size, bytes(cache));
  }

  /// Element i is `load(i)`, rounded once to the type of the cache.
  template <class Load>
  void floats(const Load& load) const {
    k.for_(lane, size, kCacheThreads, [&](Value<u32> i) {
      const Value<f32> element = load(i);
      store_floats(k, to.offset_bytes(k.mul_wide(i, bytes(cache))), cache, {element});
    });
  }
  /// Blocks of the four elements `load(group, inside)` of each lane, zeros unless `inside`. All
  /// lanes take part in the exchanges: those beyond the end store nothing.
  template <class Load>
  void blocks(const Load& load) const {
    const Value<u32> groups = size >> 2u;
    const Value<u32> warps_end = (groups + 31u) & ~31u;
    k.for_(lane, warps_end, kCacheThreads, [&](Value<u32> group) {
      const Pred inside = group < groups;
      const std::vector<Value<f32>> values = load(group, inside);
      const Value<u32> of_block = group & (kBlockLanes - 1);
      const QuantizedLanes quants = quantize_lanes(k, cache, values, of_block);
      const Ptr<b8> block = to.offset_bytes(k.mul_wide(group >> 3u, bytes(cache)));
      k.if_(inside, [&] { store_lanes(k, quants, of_block, block); });
    });
  }
};

/// Whether no later row of the `rows` has the position of `row`. Different in the lanes of the
/// warp, each of which compares with every 32nd row.
[[nodiscard]] inline Pred last_of_position(KernelBuilder& k, const Ptr<u32>& positions,
                                           const Value<u32>& row, const Value<u32>& rows,
                                           const Value<u32>& position) {
  auto later = k.var<u32>(0u);
  const Value<u32> next = row + 1u;
  const Value<u32> first = next + k.tid_x();
  k.for_(first, rows, kCacheThreads, [&](Value<u32> other) {
    const Value<u32> other_position = positions[other];
    later += one_if(k, other_position == position);
  });
  return later == 0u;
}

}  // namespace ptxgen::inline v0
