// src/kernels/attention/kv_cache_write.cpp - rows of k or v into a cache
#include "ptxgen/kernels/attention/kv_cache_write.hpp"

#include <algorithm>

#include "kernels/parts/cache_rows.hpp"
#include "kernels/parts/geometry.hpp"
#include "kernels/parts/whole_blocks.hpp"

namespace ptxgen::inline v0 {

namespace {

// The head of a row at `from` to its position in the cache.
void copy_head(const CacheHead& head, ElementType type, const Ptr<b8>& from) {
  KernelBuilder& k = head.k;
  if (is_block_format(head.cache)) {
    head.blocks([&](const Value<u32>& group, const Pred& inside) {
      const Ptr<b8> at = from.offset_bytes(k.mul_wide(group, kLaneValues * bytes(type)));
      return expand(k, load_floats_if(k, at, type, kLaneValues, inside), kLaneValues);
    });
  } else {
    head.floats([&](const Value<u32>& i) {
      const Ptr<b8> at = from.offset_bytes(k.mul_wide(i, bytes(type)));
      return expand(k, load_floats(k, at, type, 1), 1)[0];
    });
  }
}

}  // namespace

BuiltKernel KvCacheWrite::build(const ptx::Target& target) const {
  check_parameters(*this);
  return build_kernel(
      kernel_name<KvCacheWrite>, target.name,
      params(param<Ptr<b8>>("x"), param<Ptr<u32>>("positions"), param<Ptr<b8>>("cache"),
             param<u32>("rows"), param<u32>("heads"), param<u32>("head_size"),
             param<u32>("max_seq")),
      [&](KernelBuilder& k, Ptr<b8> x, Ptr<u32> positions, Ptr<b8> to, Value<u32> row_count,
          Value<u32> head_count, Value<u32> size, Value<u32> positions_end) {
        k.contract(Contract::Forbid);
        k.required_threads(kThreads);
        const Value<u64> x_head = k.mul_wide(size, bytes(type));
        const Value<u64> cache_row = CacheHead::bytes_of(k, cache, size);
        const Value<u32> head = k.ctaid_x();
        const Value<u32> first = k.ctaid_y();
        k.for_(first, row_count, k.nctaid_y(), [&](Value<u32> row) {
          const Value<u32> position = positions[row];
          const Pred last = last_of_position(k, positions, row, row_count, position);
          // The same for all lanes of the warp.
          k.if_(k.vote_all(last & (position < positions_end)), [&] {
            const Value<u64> from_head = k.mad_wide(row, head_count, k.convert<u64>(head));
            const Value<u64> to_row = k.mad_wide(head, positions_end, k.convert<u64>(position));
            const Ptr<b8> from_at = x.offset_bytes(from_head * x_head);
            const Ptr<b8> to_at = to.offset_bytes(to_row * cache_row);
            copy_head({k, cache, to_at, k.tid_x(), size}, type, from_at);
          });
        });
      });
}

LaunchGeometry KvCacheWrite::geometry() const {
  check_whole_blocks(kernel_name<KvCacheWrite>, "head_size", head_size, cache);
  const bool empty = rows == 0 || head_size == 0;
  LaunchGeometry geometry =
      one_dimensional(kernel_name<KvCacheWrite>, empty ? 0 : heads, 1, kThreads);
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
