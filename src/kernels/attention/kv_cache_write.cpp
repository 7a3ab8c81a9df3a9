// src/kernels/attention/kv_cache_write.cpp - rows of k or v into a cache
#include "ptxgen/kernels/attention/kv_cache_write.hpp"

#include <algorithm>

#include "kernels/parts/block_vote.hpp"
#include "kernels/parts/geometry.hpp"
#include "kernels/parts/quantized_lanes.hpp"
#include "kernels/parts/whole_blocks.hpp"
#include "kernels/parts/words.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kName = Describe<KvCacheWrite>::text.name;

/// A head of a row and its place in the cache, for a warp.
struct HeadCopy {
  KernelBuilder& k;
  ElementType type, cache;
  Ptr<b8> from, to;
  Value<u32> lane, size;

  void floats() const {
    k.for_(lane, size, KvCacheWrite::kThreads, [&](Value<u32> i) {
      const Ptr<b8> at = from.offset_bytes(k.mul_wide(i, bytes(type)));
      const Ptr<b8> place = to.offset_bytes(k.mul_wide(i, bytes(cache)));
      store_floats(k, place, cache, expand(k, load_floats(k, at, type, 1), 1));
    });
  }
  // All lanes take part in the exchanges: those beyond the end have zeros, and store nothing.
  void blocks() const {
    const Value<u32> groups = size >> 2u;
    const Value<u32> warps_end = (groups + 31u) & ~31u;
    k.for_(lane, warps_end, KvCacheWrite::kThreads, [&](Value<u32> group) {
      const Pred inside = group < groups;
      const Ptr<b8> at = from.offset_bytes(k.mul_wide(group, kLaneValues * bytes(type)));
      const Floats loaded = load_floats_if(k, at, type, kLaneValues, inside);
      const Value<u32> of_block = group & (kBlockLanes - 1);
      const QuantizedLanes quants =
          quantize_lanes(k, cache, expand(k, loaded, kLaneValues), of_block);
      const Ptr<b8> block = to.offset_bytes(k.mul_wide(group >> 3u, bytes(cache)));
      k.if_(inside, [&] { store_lanes(k, quants, of_block, block); });
    });
  }
};

// Whether this is the last row of its position, and the cache has that position. The same for all
// lanes of the warp.
Pred is_written(KernelBuilder& k, const Ptr<u32>& positions, const Value<u32>& row,
                const Value<u32>& rows, const Value<u32>& position, const Value<u32>& max_seq) {
  auto later = k.var<u32>(0u);
  const Value<u32> next = row + 1u;
  const Value<u32> first = next + k.tid_x();
  k.for_(first, rows, KvCacheWrite::kThreads, [&](Value<u32> other) {
    const Value<u32> other_position = positions[other];
    later += one_if(k, other_position == position);
  });
  const Pred last = later == 0u;
  return k.vote_all(last & (position < max_seq));
}

}  // namespace

BuiltKernel KvCacheWrite::build(const ptx::Target& target) const {
  check_parameters(*this);
  return build_kernel(
      kName, target.name,
      params(param<Ptr<b8>>("x"), param<Ptr<u32>>("positions"), param<Ptr<b8>>("cache"),
             param<u32>("rows"), param<u32>("heads"), param<u32>("head_size"),
             param<u32>("max_seq")),
      [&](KernelBuilder& k, Ptr<b8> x, Ptr<u32> positions, Ptr<b8> to, Value<u32> row_count,
          Value<u32> head_count, Value<u32> size, Value<u32> positions_end) {
        k.contract(Contract::Forbid);
        k.required_threads(kThreads);
        const std::uint32_t unit = info(cache).block_values;
        const Value<u64> x_head = k.mul_wide(size, bytes(type));
        const Value<u64> cache_row =
            unit == 1 ? k.mul_wide(size, bytes(cache)) : k.mul_wide(size >> 5u, bytes(cache));
        const Value<u32> head = k.ctaid_x();
        const Value<u32> first = k.ctaid_y();
        k.for_(first, row_count, k.nctaid_y(), [&](Value<u32> row) {
          const Value<u32> position = positions[row];
          const Pred writes = is_written(k, positions, row, row_count, position, positions_end);
          k.if_(writes, [&] {
            const Value<u64> from_head = k.mad_wide(row, head_count, k.convert<u64>(head));
            const Value<u64> to_row = k.mad_wide(head, positions_end, k.convert<u64>(position));
            const Ptr<b8> from_at = x.offset_bytes(from_head * x_head);
            const Ptr<b8> to_at = to.offset_bytes(to_row * cache_row);
            const HeadCopy copy{k, type, cache, from_at, to_at, k.tid_x(), size};
            if (is_block_format(cache)) {
              copy.blocks();
            } else {
              copy.floats();
            }
          });
        });
      });
}

LaunchGeometry KvCacheWrite::geometry() const {
  check_whole_blocks(kName, "head_size", head_size, cache);
  const bool empty = rows == 0 || head_size == 0;
  LaunchGeometry geometry = one_dimensional(kName, empty ? 0 : heads, 1, kThreads);
  geometry.grid.y = std::min(rows, 65535u);
  return geometry;
}

KernelCost KvCacheWrite::cost() const noexcept {
  const std::uint64_t elements = std::uint64_t{rows} * heads * head_size;
  return {.bytes_read = elements * bytes(type) + std::uint64_t{4} * rows,
          .bytes_written = bytes(cache, elements),
          .flops = is_block_format(cache) ? 3 * elements : 0};
}

void Describe<KvCacheWrite>::reference(const KvCacheWrite& spec, HostOperands& host) {
  std::vector<double>& cache = host["cache"].values;
  const std::vector<double>& x = host.input("x");
  for (std::size_t row = 0; row < spec.rows; ++row) {
    const double position = host.input("positions")[row];
    if (position >= spec.max_seq) continue;
    for (std::size_t head = 0; head < spec.heads; ++head) {
      const std::size_t from = (row * spec.heads + head) * spec.head_size;
      const std::size_t to =
          (head * spec.max_seq + static_cast<std::size_t>(position)) * spec.head_size;
      std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(from), spec.head_size,
                  cache.begin() + static_cast<std::ptrdiff_t>(to));
    }
  }
}

}  // namespace ptxgen::inline v0
