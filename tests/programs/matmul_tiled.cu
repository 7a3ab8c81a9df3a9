// tests/programs/matmul_tiled.cu - a product of matrices with tiles in shared memory
#include <vector>

#include "check.cuh"

constexpr int kTile = 16;

__global__ void multiply(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[kTile][kTile], tb[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int tile = 0; tile < n / kTile; ++tile) {
    ta[threadIdx.y][threadIdx.x] = a[row * n + tile * kTile + threadIdx.x];
    tb[threadIdx.y][threadIdx.x] = b[(tile * kTile + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += ta[threadIdx.y][k] * tb[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

int main() {
  const int n = 64;
  std::vector<float> a(n * n), b(n * n), c(n * n);
  for (int i = 0; i < n * n; ++i) a[i] = i % 7 - 3, b[i] = i % 5 - 2;
  float *da, *db, *dc;
  CUDA(cudaMalloc(&da, n * n * sizeof(float)));
  CUDA(cudaMalloc(&db, n * n * sizeof(float)));
  CUDA(cudaMalloc(&dc, n * n * sizeof(float)));
  CUDA(cudaMemcpy(da, a.data(), n * n * sizeof(float), cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(db, b.data(), n * n * sizeof(float), cudaMemcpyHostToDevice));
  multiply<<<dim3(n / kTile, n / kTile), dim3(kTile, kTile)>>>(da, db, dc, n);
  CUDA(cudaMemcpy(c.data(), dc, n * n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      float expected = 0;
      for (int k = 0; k < n; ++k) expected += a[i * n + k] * b[k * n + j];
      CHECK(c[i * n + j] == expected);
    }
  }
  std::puts("ok");
}
