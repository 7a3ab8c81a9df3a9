// tests/programs/dynamic_shared.cu - dynamic shared memory beyond 48 KiB
#include <vector>

#include "check.cuh"

extern __shared__ int buffer[];

__global__ void reverse(int* data, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) buffer[i] = data[i];
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += blockDim.x) data[i] = buffer[count - 1 - i];
}

int main() {
  const int count = 15000;
  const std::size_t bytes = count * sizeof(int);
  std::vector<int> host(count);
  for (int i = 0; i < count; ++i) host[i] = i;
  int* data;
  CUDA(cudaMalloc(&data, bytes));
  CUDA(cudaMemcpy(data, host.data(), bytes, cudaMemcpyHostToDevice));
  reverse<<<1, 256, bytes>>>(data, count);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CUDA(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  reverse<<<1, 256, bytes>>>(data, count);
  CUDA(cudaGetLastError());
  CUDA(cudaMemcpy(host.data(), data, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; ++i) CHECK(host[i] == count - 1 - i);
  std::puts("ok");
}
