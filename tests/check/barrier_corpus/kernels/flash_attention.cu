// tests/check/barrier_corpus/kernels/flash_attention.cu - attention, a thread for each query
#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(64)
    kernel(const __half* q, const __half* keys, float* out, int queries, int sequence, int unused) {
  constexpr int kDepth = 16, kTile = 32;
  __shared__ float ks[kTile][kDepth];
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef EARLY_EXIT
  if (row >= queries) return;
#endif
  float own[kDepth], sums[kDepth] = {}, most = -1e30f, total = 0.f;
  for (int d = 0; d < kDepth; ++d) own[d] = row < queries ? __half2float(q[row * kDepth + d]) : 0.f;
  for (int k0 = 0; k0 < sequence; k0 += kTile) {
    for (int i = threadIdx.x; i < kTile * kDepth; i += blockDim.x) {
      const int at = k0 + i / kDepth;
      ks[i / kDepth][i % kDepth] = at < sequence ? __half2float(keys[at * kDepth + i % kDepth]) : 0.f;
    }
    __syncthreads();
    const int end = min(kTile, sequence - k0);
    for (int j = 0; j < end; ++j) {
      float score = 0.f;
      for (int d = 0; d < kDepth; ++d) score += own[d] * ks[j][d];
      const float higher = fmaxf(most, score), scale = __expf(most - higher);
      const float weight = __expf(score - higher);
      total = total * scale + weight;
      for (int d = 0; d < kDepth; ++d) sums[d] = sums[d] * scale + weight * ks[j][d];
      most = higher;
    }
    __syncthreads();
  }
  if (row >= queries) return;
  for (int d = 0; d < kDepth; ++d) out[row * kDepth + d] = sums[d] / total + unused;
}
