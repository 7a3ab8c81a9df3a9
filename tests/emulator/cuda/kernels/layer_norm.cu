// tests/emulator/cuda/kernels/layer_norm.cu - layer norm with Welford's running moments
__device__ void combine(float& count, float& mean, float& m2, float n, float other,
                        float other_m2) {
  const float total = count + n;
  if (total == 0) return;
  const float delta = other - mean;
  mean += delta * n / total;
  m2 += other_m2 + delta * delta * count * n / total;
  count = total;
}

extern "C" __global__ void layer_norm(const float* in, const float* gain, const float* bias,
                                      float* out, int columns, float epsilon) {
  __shared__ float counts[32], means[32], squares[32];
  const float* x = in + blockIdx.x * columns;
  float count = 0, mean = 0, m2 = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    count += 1;
    const float delta = x[i] - mean;
    mean += delta / count;
    m2 += delta * (x[i] - mean);
  }
  for (int step = 16; step > 0; step /= 2) {
    const float n = __shfl_down_sync(0xffffffffu, count, step);
    const float other = __shfl_down_sync(0xffffffffu, mean, step);
    const float other_m2 = __shfl_down_sync(0xffffffffu, m2, step);
    combine(count, mean, m2, n, other, other_m2);
  }
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) {
    counts[warp] = count;
    means[warp] = mean;
    squares[warp] = m2;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < blockDim.x / 32; ++w)
      combine(count, mean, m2, counts[w], means[w], squares[w]);
    means[0] = mean;
    squares[0] = rsqrtf(m2 / count + epsilon);
  }
  __syncthreads();
  mean = means[0];
  const float scale = squares[0];
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    out[blockIdx.x * columns + i] = (x[i] - mean) * scale * gain[i] + bias[i];
}
