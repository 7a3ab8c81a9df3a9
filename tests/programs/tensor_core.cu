// tests/programs/tensor_core.cu - a product of tiles with wmma
#include <cuda_fp16.h>
#include <mma.h>

#include "check.cuh"

using namespace nvcuda;

__global__ void product(const half* a, const half* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 1.0f);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

int main() {
  half *a, *b;
  float* c;
  CUDA(cudaMallocManaged(&a, 256 * sizeof(half)));
  CUDA(cudaMallocManaged(&b, 256 * sizeof(half)));
  CUDA(cudaMallocManaged(&c, 256 * sizeof(float)));
  for (int i = 0; i < 256; ++i) {
    a[i] = __float2half(i % 5 - 2);
    b[i] = __float2half(i % 3 - 1);
  }
  product<<<1, 32>>>(a, b, c);
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      float expected = 1;
      for (int k = 0; k < 16; ++k) {
        expected += __half2float(a[i * 16 + k]) * __half2float(b[k * 16 + j]);
      }
      CHECK(c[i * 16 + j] == expected);
    }
  }
  std::puts("ok");
}
