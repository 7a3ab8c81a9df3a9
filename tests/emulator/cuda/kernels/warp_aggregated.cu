// tests/emulator/cuda/kernels/warp_aggregated.cu - filters that add once for each warp
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void filter_groups(const int* in, int n, int* out, unsigned* count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || in[i] <= 0) return;
  const cg::coalesced_group active = cg::coalesced_threads();
  unsigned base = 0;
  if (active.thread_rank() == 0) base = atomicAdd(count, active.size());
  out[active.shfl(base, 0) + active.thread_rank()] = in[i];
}

extern "C" __global__ void filter_by_hand(const int* in, int n, int* out, unsigned* count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    if (in[i] <= 0) continue;
    const unsigned active = __activemask();
    const int lane = threadIdx.x % 32, leader = __ffs(active) - 1;
    unsigned base = 0;
    if (lane == leader) base = atomicAdd(count, __popc(active));
    base = __shfl_sync(active, base, leader);
    out[base + __popc(active & ((1u << lane) - 1))] = in[i];
  }
}

// One atomic for each different key of a warp.
extern "C" __global__ void count_keys(const int* keys, int n, unsigned* counts) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const bool valid = i < n;
  const unsigned some = __ballot_sync(0xffffffffu, valid);
  if (!valid) return;
  const unsigned same = __match_any_sync(some, keys[i]);
  if (threadIdx.x % 32 == __ffs(same) - 1) atomicAdd(&counts[keys[i]], __popc(same));
}
