// tests/emulator/defects/cuda/early_exit.cu - threads beyond the end leave a tile loop
// run: grid=2 block=64 args="zero:4096 u32:100"
// expect: exited-before-barrier
extern "C" __global__ void kernel(unsigned* out, unsigned n) {
  __shared__ unsigned tile[64];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;  // <~ exited-before-barrier
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned step = 0; step < 4; ++step) {  // <~ exited-before-barrier
    tile[threadIdx.x] = i + step;              // <~ exited-before-barrier
    __syncthreads();                           // <~ exited-before-barrier
    sum += tile[0];                            // <~ exited-before-barrier
    __syncthreads();                           // <~ exited-before-barrier
  }
  out[i] = sum;
}  // <~ exited-before-barrier
