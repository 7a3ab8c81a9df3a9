// tests/check/barrier_corpus/kernels/flash_attention_tensor_core.cu - attention by wmma, keys in tiles
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void __launch_bounds__(64)
    kernel(const __half* q, const __half* keys, float* out, int queries, int sequence, int unused) {
  __shared__ __half qs[32 * 16], ks[16 * 16], weights[32 * 16];
  __shared__ float scores[32 * 16], sums[32 * 16], totals[32];
  const int warp = threadIdx.x / 32, row0 = blockIdx.x * 32;
  const int row = row0 + threadIdx.x / 2;
  for (int i = threadIdx.x; i < 512; i += 64) {
    qs[i] = row0 + i / 16 < queries ? q[row0 * 16 + i] : __float2half(0.f);
    sums[i] = 0.f;
  }
  if (threadIdx.x < 32) totals[threadIdx.x] = 0.f;
  for (int k0 = 0; k0 < sequence; k0 += 16) {
    for (int i = threadIdx.x; i < 256; i += 64)
      ks[i] = k0 + i / 16 < sequence ? keys[k0 * 16 + i] : __float2half(0.f);
    __syncthreads();
#ifdef EARLY_EXIT
    if (row >= queries) return;
#endif
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> across;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> score;
    wmma::fill_fragment(score, 0.f);
    wmma::load_matrix_sync(left, qs + warp * 256, 16);
    wmma::load_matrix_sync(across, ks, 16);
    wmma::mma_sync(score, left, across, score);
    wmma::store_matrix_sync(scores + warp * 256, score, 16, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x % 2; i < 16; i += 2) {
      const int at = threadIdx.x / 2 * 16 + i;
      const float weight = k0 + i < sequence ? __expf(scores[at]) : 0.f;
      weights[at] = __float2half(weight);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
      for (int i = 0; i < 16; ++i) totals[threadIdx.x] += __half2float(weights[threadIdx.x * 16 + i]);
    }
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> values;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(left, weights + warp * 256, 16);
    wmma::load_matrix_sync(values, ks, 16);
    wmma::load_matrix_sync(sum, sums + warp * 256, 16, wmma::mem_row_major);
    wmma::mma_sync(sum, left, values, sum);
    wmma::store_matrix_sync(sums + warp * 256, sum, 16, wmma::mem_row_major);
    __syncthreads();
  }
  if (row >= queries) return;
  for (int i = threadIdx.x % 2; i < 16; i += 2) {
    const int at = threadIdx.x / 2 * 16 + i;
    out[row0 * 16 + at] = sums[at] / totals[threadIdx.x / 2] + unused;
  }
}
