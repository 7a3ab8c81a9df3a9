// tests/emulator/defects/cuda/clean_tile_loop_group.cu - barriers of a cooperative group
// run: grid=2 block=64 args="zero:4096 u32:100"
// expect: clean barrier-divergence
#include <cooperative_groups.h>
extern "C" __global__ void kernel(unsigned* out, unsigned n) {
  __shared__ unsigned tile[64];
  const cooperative_groups::thread_block block = cooperative_groups::this_thread_block();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned step = 0; step < 4; ++step) {
    tile[threadIdx.x] = i + step;
    block.sync();
    sum += tile[63 - threadIdx.x];
    block.sync();
  }
  if (i < n) out[i] = sum;
}
