// src/kernels/parts/spread.hpp - elements over the grid's threads, 16 bytes a lane
#pragma once

#include "ptxgen/builder.hpp"

namespace ptxgen::inline v0 {

/// The largest block that `spread` is for.
inline constexpr std::uint32_t kSpreadMaxThreads = 1024;
/// Bytes of a group.
inline constexpr unsigned kWideBytes = 16;

/// Spreads [0, n) over all threads of the grid: `wide(v)` for each full group `v` of 16 bytes where
/// `addresses`, the bitwise or of all buffers' addresses, is a multiple of 16, and `single(i)` for
/// each element i that is left. Grid-strided: any grid and block computes everything.
template <class Wide, class Single>
void spread(KernelBuilder& k, const Value<u32>& n, const Value<u64>& addresses, unsigned group_log2,
            Wide&& wide, Single&& single) {
  k.max_threads(kSpreadMaxThreads);
  const Value<u32> thread = k.global_thread_x();
  const Value<u32> block_threads = k.ntid_x();
  const Value<u32> blocks = k.nctaid_x();
  const Value<u32> threads = k.mul_lo(block_threads, blocks);
  const Value<u64> misaligned = addresses & std::uint64_t{kWideBytes - 1};
  const Pred aligned = misaligned == 0u;
  const Value<u32> all_groups = n >> group_log2;
  const Value<u32> groups = k.selp(all_groups, 0u, aligned);
  k.for_(thread, groups, threads, wide);
  // Counted from the first remaining element, so no index overflows.
  const Value<u32> first = groups << group_log2;
  const Value<u32> left = n - first;
  k.for_(thread, left, threads, [&](Value<u32> i) {
    const Value<u32> element = first + i;
    single(element);
  });
}

}  // namespace ptxgen::inline v0
