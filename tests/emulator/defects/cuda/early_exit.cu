// tests/emulator/defects/cuda/early_exit.cu - threads beyond the end leave a tile loop
// run: grid=2 block=64 args="zero:4096 u32:100"
// expect: barrier-divergence
extern "C" __global__ void kernel(unsigned* out, unsigned n) {
  __shared__ unsigned tile[64];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;  // <~ barrier-divergence
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned step = 0; step < 4; ++step) {  // <~ barrier-divergence
    tile[threadIdx.x] = i + step;              // <~ barrier-divergence
    __syncthreads();                           // <~ barrier-divergence
    sum += tile[0];                            // <~ barrier-divergence
    __syncthreads();                           // <~ barrier-divergence
  }
  out[i] = sum;
}  // <~ barrier-divergence
