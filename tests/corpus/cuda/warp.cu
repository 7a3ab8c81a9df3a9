// tests/corpus/cuda/warp.cu - shuffles, votes, matches, reductions and cooperative groups
// Exercises: shfl.sync all modes with the predicate destination, vote.sync, match.any/all,
// activemask, redux.sync (sm_80+), bar.warp.sync, elect.sync (sm_90), lane masks, cooperative group
// tiles.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void shuffles(int* out, const int* in, const double* din, double* dout) {
  const unsigned full = 0xffffffffu;
  int v = in[threadIdx.x];
  v += __shfl_sync(full, v, 3);
  v += __shfl_up_sync(full, v, 1, 16);
  v += __shfl_down_sync(full, v, 2, 8);
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(full, v, d);
  out[threadIdx.x] = v;
  dout[threadIdx.x] = __shfl_xor_sync(full, din[threadIdx.x], 16);
  int got, ok;
  asm volatile(
      "{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, 4, 0x1f, 0xffffffff; selp.b32 %1, 1, 0, p; }"
      : "=r"(got), "=r"(ok)
      : "r"(v));
  out[threadIdx.x + 32] = got + ok;
}

extern "C" __global__ void votes(unsigned* out, const int* in, unsigned long long key) {
  const unsigned mask = __activemask();
  const int v = in[threadIdx.x];
  unsigned r = __ballot_sync(mask, v > 3);
  if (__any_sync(mask, v == 9)) r ^= 1u;
  if (__all_sync(mask, v < 100)) r ^= 2u;
  r += __uni_sync(mask, v);
  r += __match_any_sync(mask, v);
  int pred;
  r += __match_all_sync(mask, key, &pred);
  out[threadIdx.x] = r + pred;
  __syncwarp(mask);
}

extern "C" __global__ void redux(unsigned* out, const int* in) {
#if __CUDA_ARCH__ >= 800
  const int v = in[threadIdx.x];
  unsigned r = __reduce_add_sync(0xffffffffu, v);
  r ^= __reduce_min_sync(0xffffffffu, v);
  r ^= __reduce_max_sync(0xffffffffu, static_cast<unsigned>(v));
  r ^= __reduce_and_sync(0xffffu, static_cast<unsigned>(v));
  r ^= __reduce_or_sync(0xffffffffu, static_cast<unsigned>(v));
  r ^= __reduce_xor_sync(0xffffffffu, static_cast<unsigned>(v));
  out[threadIdx.x] = r;
#else
  out[threadIdx.x] = in[threadIdx.x];
#endif
#if __CUDA_ARCH__ >= 900
  unsigned leader, elected;
  asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.u32 %1, 1, 0, p; }"
               : "=r"(leader), "=r"(elected));
  out[threadIdx.x + 32] = leader + elected;
  asm volatile("{\n\t.reg .pred P1;\n\telect.sync _|P1, %1;\n\t@P1 mov.s32 %0, 1;\n\t}\n"
               : "+r"(out[64])
               : "r"(0xffffffffu));
#endif
}

extern "C" __global__ void groups(int* out, const int* in) {
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  int v = in[block.thread_rank()];
  for (int d = tile.size() / 2; d > 0; d /= 2) v += tile.shfl_down(v, d);
  if (tile.thread_rank() == 0) out[tile.meta_group_rank()] = v;
  const cg::coalesced_group active = cg::coalesced_threads();
  if (active.any(v > 5)) active.sync();
  block.sync();
}

extern "C" __global__ void grid_sync(int* out) {
  const cg::grid_group grid = cg::this_grid();
  out[grid.thread_rank()] = 1;
  grid.sync();
  out[grid.thread_rank()] += out[0];
}
