// tests/programs/device_assert.cu - an assertion of a kernel stops the context
#include <cassert>

#include "check.cuh"

__global__ void positive(const int* values) { assert(values[threadIdx.x] > 0); }

int main() {
  int host[32], *values;
  for (int i = 0; i < 32; ++i) host[i] = 32 - i;
  CUDA(cudaMalloc(&values, sizeof host));
  CUDA(cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice));
  positive<<<1, 32>>>(values);
  CUDA(cudaDeviceSynchronize());
  host[7] = 0;
  CUDA(cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice));
  positive<<<1, 32>>>(values);
  FAILS(cudaDeviceSynchronize(), cudaErrorAssert);
  // The error stays until the device is reset.
  FAILS(cudaMalloc(&values, 4), cudaErrorAssert);
  FAILS(cudaGetLastError(), cudaErrorAssert);
  FAILS(cudaDeviceSynchronize(), cudaErrorAssert);
  CUDA(cudaDeviceReset());
  CUDA(cudaMalloc(&values, 4));
  std::puts("ok");
}
