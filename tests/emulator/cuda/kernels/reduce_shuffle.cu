// tests/emulator/cuda/kernels/reduce_shuffle.cu - block sums by warp shuffles
__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
  return value;
}

extern "C" __global__ void reduce_shuffle(const float* in, int n, float* sums) {
  __shared__ float of_warp[32];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += in[i];
  sum = warp_sum(sum);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) of_warp[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = lane < (blockDim.x + 31) / 32 ? of_warp[lane] : 0.0f;
    sum = warp_sum(sum);
    if (lane == 0) sums[blockIdx.x] = sum;
  }
}

// 64-bit values and the butterfly: every lane gets the maximum.
extern "C" __global__ void reduce_butterfly(const long long* in, long long* out) {
  long long value = in[blockIdx.x * 32 + threadIdx.x];
  for (int step = 1; step < 32; step *= 2) {
    const long long other = __shfl_xor_sync(0xffffffffu, value, step);
    value = other > value ? other : value;
  }
  out[blockIdx.x * 32 + threadIdx.x] = value;
}
