// tests/emulator/cuda/kernels/gemm_wmma.cu - tensor-core products through nvcuda::wmma
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void gemm_wmma(const __half* a, const __half* b, float* c, int n, int k) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(fa, a + blockIdx.y * 16 * k + i, k);
    wmma::load_matrix_sync(fb, b + blockIdx.x * 16 * k + i, k);
    wmma::mma_sync(sum, fa, fb, sum);
  }
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 0.5f;
  wmma::store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, sum, n, wmma::mem_row_major);
}

// f16 accumulators, operands from shared memory, the other layouts and the 32x8x16 shape.
extern "C" __global__ void wmma_half(const __half* a, const __half* b, __half* c) {
  __shared__ __align__(32) __half sa[32 * 16], sb[16 * 8], sc[32 * 8];
  for (int i = threadIdx.x; i < 32 * 16; i += 32) sa[i] = a[i];
  for (int i = threadIdx.x; i < 16 * 8; i += 32) sb[i] = b[i];
  for (int i = threadIdx.x; i < 32 * 8; i += 32) sc[i] = c[i];
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 32, 8, 16, __half, wmma::col_major> fa;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, __half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 32, 8, 16, __half> sum;
  wmma::load_matrix_sync(fa, sa, 32);
  wmma::load_matrix_sync(fb, sb, 8);
  wmma::load_matrix_sync(sum, sc, 32, wmma::mem_col_major);
  wmma::mma_sync(sum, fa, fb, sum);
  __syncwarp();
  wmma::store_matrix_sync(sc, sum, 32, wmma::mem_col_major);
  __syncwarp();
  for (int i = threadIdx.x; i < 32 * 8; i += 32) c[i] = sc[i];
}

extern "C" __global__ void wmma_bytes(const signed char* a, const signed char* b, int* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
  wmma::fill_fragment(sum, 7);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(sum, fa, fb, sum);
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
