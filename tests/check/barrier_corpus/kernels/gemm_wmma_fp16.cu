// tests/check/barrier_corpus/kernels/gemm_wmma_fp16.cu - GEMM by wmma, shared tiles in a K loop
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void __launch_bounds__(128)
    kernel(const __half* a, const __half* b, float* c, int m, int n, int k) {
  __shared__ __half as[32 * 16];
  __shared__ __half bs[16 * 32];
  __shared__ float cs[32 * 32];
  const int warp = threadIdx.x / 32;
  const int column = blockIdx.x * 32 + threadIdx.x % 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.f);
#ifdef EARLY_EXIT
  if (column >= n) return;
#endif
  for (int k0 = 0; k0 < k; k0 += 16) {
    for (int i = threadIdx.x; i < 512; i += 128) {
      const int r = blockIdx.y * 32 + i / 16, inner = k0 + i % 16;
      as[i] = r < m && inner < k ? a[r * k + inner] : __float2half(0.f);
      const int depth = k0 + i / 32, at = blockIdx.x * 32 + i % 32;
      bs[i] = depth < k && at < n ? b[depth * n + at] : __float2half(0.f);
    }
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
    wmma::load_matrix_sync(fa, as + warp / 2 * 16 * 16, 16);
    wmma::load_matrix_sync(fb, bs + warp % 2 * 16, 32);
    wmma::mma_sync(sum, fa, fb, sum);
    __syncthreads();
  }
  wmma::store_matrix_sync(cs + warp / 2 * 16 * 32 + warp % 2 * 16, sum, 32, wmma::mem_row_major);
  __syncthreads();
  for (int i = threadIdx.x / 32; i < 32; i += 4) {
    const int r = blockIdx.y * 32 + i;
    if (r < m && column < n) c[r * n + column] = cs[i * 32 + threadIdx.x % 32];
  }
}
