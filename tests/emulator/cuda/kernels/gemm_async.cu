// tests/emulator/cuda/kernels/gemm_async.cu - two shared buffers filled by cp.async
#include <cuda_pipeline.h>

#define TILE 32

__device__ void fetch(float (*to)[TILE], const float* from, int stride) {
  // 256 threads copy 32 x 32 floats, 16 bytes each.
  const int row = threadIdx.x / 8, column = threadIdx.x % 8 * 4;
  __pipeline_memcpy_async(&to[row][column], from + row * stride + column, 16);
}

extern "C" __global__ void gemm_async(const float* a, const float* b, float* c, int n, int k) {
  __shared__ __align__(16) float as[2][TILE][TILE], bs[2][TILE][TILE];
  const float* a0 = a + blockIdx.y * TILE * k;
  const float* b0 = b + blockIdx.x * TILE;
  const int row = threadIdx.x / 8, column = threadIdx.x % 8 * 4;
  float sum[4] = {};
  fetch(as[0], a0, k);
  fetch(bs[0], b0, n);
  __pipeline_commit();
  const int steps = k / TILE;
  for (int s = 0; s < steps; ++s) {
    if (s + 1 < steps) {
      fetch(as[(s + 1) % 2], a0 + (s + 1) * TILE, k);
      fetch(bs[(s + 1) % 2], b0 + (s + 1) * TILE * n, n);
    }
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    for (int i = 0; i < TILE; ++i)
      for (int j = 0; j < 4; ++j) sum[j] += as[s % 2][row][i] * bs[s % 2][i][column + j];
    __syncthreads();
  }
  for (int j = 0; j < 4; ++j)
    c[(blockIdx.y * TILE + row) * n + blockIdx.x * TILE + column + j] = sum[j];
}

// 4-byte copies with fewer source bytes than destination bytes: the rest becomes zero.
extern "C" __global__ void async_edges(const int* in, int n, int* out) {
  __shared__ int tile[128];
  const int i = blockIdx.x * 128 + threadIdx.x;
  __pipeline_memcpy_async(&tile[threadIdx.x], i < n ? in + i : in, 4, i < n ? 0 : 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[i] = tile[127 - threadIdx.x];
}
