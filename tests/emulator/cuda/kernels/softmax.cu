// tests/emulator/cuda/kernels/softmax.cu - softmax of rows: online, and in three sweeps
__device__ void merge(float& most, float& sum, float other_most, float other_sum) {
  const float larger = fmaxf(most, other_most);
  sum = sum * __expf(most - larger) + other_sum * __expf(other_most - larger);
  most = larger;
}

// One warp a row, one sweep for maximum and sum.
extern "C" __global__ void softmax_online(const float* in, float* out, int rows, int columns) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const float* x = in + row * columns;
  float most = -1e30f, sum = 0;
  for (int i = threadIdx.x; i < columns; i += 32) merge(most, sum, x[i], 1.0f);
  for (int step = 16; step > 0; step /= 2)
    merge(most, sum, __shfl_xor_sync(0xffffffffu, most, step),
          __shfl_xor_sync(0xffffffffu, sum, step));
  for (int i = threadIdx.x; i < columns; i += 32)
    out[row * columns + i] = __expf(x[i] - most) / sum;
}

// One block a row; columns after the row's own index are masked out.
extern "C" __global__ void softmax_causal(const float* in, float* out, int columns, float scale) {
  extern __shared__ float part[];
  const int row = blockIdx.x, t = threadIdx.x;
  const float* x = in + row * columns;
  float most = -INFINITY;
  for (int i = t; i <= row; i += blockDim.x) most = fmaxf(most, x[i] * scale);
  part[t] = most;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) part[t] = fmaxf(part[t], part[t + half]);
    __syncthreads();
  }
  most = part[0];
  __syncthreads();
  float sum = 0;
  for (int i = t; i <= row; i += blockDim.x) sum += expf(x[i] * scale - most);
  part[t] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  const float inverse = 1.0f / part[0];
  for (int i = t; i < columns; i += blockDim.x)
    out[row * columns + i] = i <= row ? expf(x[i] * scale - most) * inverse : 0.0f;
}
