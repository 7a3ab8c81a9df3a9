// tests/programs/vector_add.cu - one thread for each element of two vectors
#include <vector>

#include "check.cuh"

__global__ void add(const float* a, const float* b, float* sum, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}

int main() {
  const int count = 5000;
  std::vector<float> a(count), b(count), sum(count);
  for (int i = 0; i < count; ++i) a[i] = i * 0.5f, b[i] = 1000 - i;
  float *da, *db, *dsum;
  const std::size_t bytes = count * sizeof(float);
  CUDA(cudaMalloc(&da, bytes));
  CUDA(cudaMalloc(&db, bytes));
  CUDA(cudaMalloc(&dsum, bytes));
  CUDA(cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice));
  add<<<(count + 255) / 256, 256>>>(da, db, dsum, count);
  CUDA(cudaGetLastError());
  CUDA(cudaMemcpy(sum.data(), dsum, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; ++i) CHECK(sum[i] == a[i] + b[i]);
  CUDA(cudaFree(da));
  CUDA(cudaFree(db));
  CUDA(cudaFree(dsum));
  std::puts("ok");
}
