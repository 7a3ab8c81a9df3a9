// tests/emulator/cuda/kernels/scan_doubling.cu - inclusive scan by doubling, two buffers
extern "C" __global__ void scan_doubling(const int* in, int* out, int n) {
  extern __shared__ int both[];
  const int i = threadIdx.x;
  int from = 0;
  both[i] = i < n ? in[i] : 0;
  __syncthreads();
  for (int step = 1; step < blockDim.x; step *= 2) {
    const int to = 1 - from;
    int value = both[from * blockDim.x + i];
    if (i >= step) value += both[from * blockDim.x + i - step];
    both[to * blockDim.x + i] = value;
    from = to;
    __syncthreads();
  }
  if (i < n) out[i] = both[from * blockDim.x + i];
}

// In one warp's registers.
extern "C" __global__ void scan_warp(const unsigned* in, unsigned* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  unsigned value = in[i];
  for (unsigned step = 1; step < 32; step *= 2) {
    const unsigned below = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step) value += below;
  }
  out[i] = value;
}
