// tests/emulator/cuda/kernels/gemm_tiled.cu - tiled matrix products, any size
extern "C" __global__ void gemm_tiled(const float* a, const float* b, float* c, int m, int n,
                                      int k) {
  __shared__ float as[16][16], bs[16][17];
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int start = 0; start < k; start += 16) {
    const int ka = start + threadIdx.x, kb = start + threadIdx.y;
    as[threadIdx.y][threadIdx.x] = row < m && ka < k ? a[row * k + ka] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = kb < k && column < n ? b[kb * n + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

// Four by four results a thread, float4 loads; sizes are multiples of 32.
extern "C" __global__ void gemm_blocked(const float* a, const float* b, float* c, int n, int k,
                                        float alpha, float beta) {
  __shared__ __align__(16) float as[8][32];
  __shared__ __align__(16) float bs[8][32];
  const int t = threadIdx.x;  // 64 threads
  const int row0 = blockIdx.y * 32, column0 = blockIdx.x * 32;
  const int ty = t / 8 * 4, tx = t % 8 * 4;
  float sum[4][4] = {};
  for (int start = 0; start < k; start += 8) {
    const int ar = t / 2, ak = t % 2 * 4;
    const float4 four = *reinterpret_cast<const float4*>(a + (row0 + ar) * k + start + ak);
    as[ak][ar] = four.x;
    as[ak + 1][ar] = four.y;
    as[ak + 2][ar] = four.z;
    as[ak + 3][ar] = four.w;
    const int bk = t / 8, bn = t % 8 * 4;
    *reinterpret_cast<float4*>(&bs[bk][bn]) =
        *reinterpret_cast<const float4*>(b + (start + bk) * n + column0 + bn);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float4 x = *reinterpret_cast<const float4*>(&as[i][ty]);
      const float4 y = *reinterpret_cast<const float4*>(&bs[i][tx]);
      const float left[4] = {x.x, x.y, x.z, x.w}, right[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int s = 0; s < 4; ++s) sum[r][s] += left[r] * right[s];
    }
    __syncthreads();
  }
  for (int r = 0; r < 4; ++r)
    for (int s = 0; s < 4; ++s) {
      float* out = &c[(row0 + ty + r) * n + column0 + tx + s];
      *out = alpha * sum[r][s] + beta * *out;
    }
}
