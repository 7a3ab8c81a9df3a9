// tests/emulator/defects/cuda/clean_tile_loop.cu - threads beyond the end stay for the barriers
// run: grid=2 block=64 args="zero:4096 u32:100"
// expect: clean barrier-divergence
extern "C" __global__ void kernel(unsigned* out, unsigned n) {
  __shared__ unsigned tile[64];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned step = 0; step < 4; ++step) {
    tile[threadIdx.x] = i + step;
    __syncthreads();
    sum += tile[63 - threadIdx.x];
    __syncthreads();
  }
  if (i < n) out[i] = sum;
}
