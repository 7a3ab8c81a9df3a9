// tests/emulator/defects/cuda/uninitialized.cu - the rest of a short tile is not filled
// run: grid=1 block=64 args="zero:4096 u32:50"
// expect: uninitialized-read
extern "C" __global__ void kernel(unsigned* out, unsigned n) {
  __shared__ unsigned tile[64];
  if (threadIdx.x < n) tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];  // <- uninitialized-read
}
