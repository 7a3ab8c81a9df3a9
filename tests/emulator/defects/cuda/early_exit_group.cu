// tests/emulator/defects/cuda/early_exit_group.cu - the same through a cooperative group
// run: grid=2 block=64 args="zero:4096 u32:100"
// expect: barrier-divergence
#include <cooperative_groups.h>
extern "C" __global__ void kernel(unsigned* out, unsigned n) {
  __shared__ unsigned tile[64];
  const cooperative_groups::thread_block block = cooperative_groups::this_thread_block();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;  // <~ barrier-divergence
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned step = 0; step < 4; ++step) {  // <~ barrier-divergence
    tile[threadIdx.x] = i + step;              // <~ barrier-divergence
    block.sync();                              // <~ barrier-divergence
    sum += tile[0];                            // <~ barrier-divergence
    block.sync();                              // <~ barrier-divergence
  }
  out[i] = sum;
}  // <~ barrier-divergence
