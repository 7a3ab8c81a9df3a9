// tests/emulator/defects/cuda/early_exit_group.cu - the same through a cooperative group
// run: grid=2 block=64 args="zero:4096 u32:100"
// expect: exited-before-barrier
#include <cooperative_groups.h>
extern "C" __global__ void kernel(unsigned* out, unsigned n) {
  __shared__ unsigned tile[64];
  const cooperative_groups::thread_block block = cooperative_groups::this_thread_block();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;  // <~ exited-before-barrier
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned step = 0; step < 4; ++step) {  // <~ exited-before-barrier
    tile[threadIdx.x] = i + step;              // <~ exited-before-barrier
    block.sync();                              // <~ exited-before-barrier
    sum += tile[0];                            // <~ exited-before-barrier
    block.sync();                              // <~ exited-before-barrier
  }
  out[i] = sum;
}  // <~ exited-before-barrier
