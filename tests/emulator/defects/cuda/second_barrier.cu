// tests/emulator/defects/cuda/second_barrier.cu - a tile loop lacks its second barrier
// run: grid=1 block=64 args="zero:4096"
// expect: shared-race
extern "C" __global__ void kernel(unsigned* out) {
  __shared__ unsigned tile[64];
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned step = 0; step < 4; ++step) {
    tile[threadIdx.x] = threadIdx.x + step;  // <- shared-race
    __syncthreads();
    sum += tile[63 - threadIdx.x];  // <- shared-race
  }
  out[threadIdx.x] = sum;
}
