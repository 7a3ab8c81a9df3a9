// tests/corpus/cuda/kernels.cu - model kernels: quantised GEMV, softmax, RMS norm, tiled GEMM, scan
// Exercises: what inference libraries compile to: packed nibbles with dp4a, warp reductions, expf,
// shared tiles, float4 streams, template tile sizes, unrolled loops.
#include <cuda_fp16.h>

struct BlockQ4 {
  half scale;
  unsigned char quants[16];
};

struct BlockQ8 {
  float scale;
  signed char quants[32];
};

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}

extern "C" __global__ void gemv_q4(float* __restrict__ y, const BlockQ4* __restrict__ w,
                                   const BlockQ8* __restrict__ x, int blocks) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  float acc = 0.0f;
  for (int b = threadIdx.x; b < blocks; b += 32) {
    const BlockQ4& q = w[row * blocks + b];
    int dot = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      int packed;
      memcpy(&packed, q.quants + 4 * k, 4);
      const int lo = packed & 0x0f0f0f0f, hi = (packed >> 4) & 0x0f0f0f0f;
      int xl, xh;
      memcpy(&xl, x[b].quants + 4 * k, 4);
      memcpy(&xh, x[b].quants + 16 + 4 * k, 4);
      dot = __dp4a(lo, xl, dot);
      dot = __dp4a(hi, xh, dot);
    }
    acc += __half2float(q.scale) * x[b].scale * static_cast<float>(dot);
  }
  acc = warp_sum(acc);
  if (threadIdx.x == 0) y[row] = acc;
}

extern "C" __global__ void __launch_bounds__(1024)
    softmax(float* out, const float* in, int n, float scale) {
  __shared__ float partial[32];
  const float* row = in + static_cast<size_t>(blockIdx.x) * n;
  float top = -__builtin_huge_valf();
  for (int i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, row[i] * scale);
  top = warp_max(top);
  if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = top;
  __syncthreads();
  top =
      warp_max(threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x & 31] : -__builtin_huge_valf());
  if (threadIdx.x == 0) partial[0] = top;
  __syncthreads();
  top = partial[0];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float e = __expf(row[i] * scale - top);
    out[static_cast<size_t>(blockIdx.x) * n + i] = e;
    sum += e;
  }
  sum = warp_sum(sum);
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    out[static_cast<size_t>(blockIdx.x) * n + i] /= sum;
}

extern "C" __global__ void rms_norm(half* out, const half* in, const float* weight, int n,
                                    float eps) {
  float ss = 0.0f;
  for (int i = threadIdx.x; i < n / 2; i += 32) {
    const float2 v = __half22float2(reinterpret_cast<const half2*>(in)[i]);
    ss += v.x * v.x + v.y * v.y;
  }
  const float r = rsqrtf(warp_sum(ss) / n + eps);
  for (int i = threadIdx.x; i < n; i += 32)
    out[i] = __float2half(__half2float(in[i]) * r * weight[i]);
}

template <int kTile>
__global__ void gemm(float* c, const float* a, const float* b, int m, int n, int k) {
  __shared__ float sa[kTile][kTile + 1], sb[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, col = blockIdx.x * kTile + threadIdx.x;
  float acc = 0.0f;
  for (int t = 0; t < k; t += kTile) {
    sa[threadIdx.y][threadIdx.x] =
        row < m && t + threadIdx.x < k ? a[row * k + t + threadIdx.x] : 0.0f;
    sb[threadIdx.y][threadIdx.x] =
        col < n && t + threadIdx.y < k ? b[(t + threadIdx.y) * n + col] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) acc += sa[threadIdx.y][i] * sb[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = acc;
}
template __global__ void gemm<8>(float*, const float*, const float*, int, int, int);
template __global__ void gemm<16>(float*, const float*, const float*, int, int, int);

extern "C" __global__ void block_scan(int* data, int n) {
  extern __shared__ int scratch[];
  const int t = threadIdx.x;
  scratch[t] = t < n ? data[blockIdx.x * n + t] : 0;
  for (int d = 1; d < n; d <<= 1) {
    __syncthreads();
    const int v = t >= d ? scratch[t - d] : 0;
    __syncthreads();
    scratch[t] += v;
  }
  if (t < n) data[blockIdx.x * n + t] = scratch[t];
}
