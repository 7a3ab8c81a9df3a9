// tests/emulator/defects/cuda/clean_last_block.cu - the last block sums behind fences
// run: grid=4 block=64 args="zero:4096" checks=all
// expect: clean global-race
extern "C" __global__ void kernel(unsigned* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    out[16 + blockIdx.x] = blockIdx.x + 10;
    __threadfence();
    last = atomicAdd(out, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last && threadIdx.x < gridDim.x) {
    out[64 + threadIdx.x] = out[16 + threadIdx.x];
  }
}
