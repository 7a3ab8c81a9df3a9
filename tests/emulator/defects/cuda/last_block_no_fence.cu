// tests/emulator/defects/cuda/last_block_no_fence.cu - the last block sums without fences
// run: grid=4 block=64 args="zero:4096" checks=all
// expect: global-race
extern "C" __global__ void kernel(unsigned* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    out[16 + blockIdx.x] = blockIdx.x + 10;                 // <- global-race
    last = atomicAdd(out, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x < gridDim.x) {
    out[64 + threadIdx.x] = out[16 + threadIdx.x];  // <- global-race
  }
}
