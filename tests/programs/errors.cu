// tests/programs/errors.cu - the last error, names of errors, refused configurations
#include <cstring>

#include "check.cuh"

__global__ void nothing() {}
__global__ __launch_bounds__(64) void small() {}

int main() {
  void* memory = nullptr;
  CUDA(cudaFree(nullptr));
  CHECK(cudaGetLastError() == cudaSuccess);
  nothing<<<0, 32>>>();
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaSuccess);
  nothing<<<1, 1025>>>();
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  nothing<<<dim3(1, 70000), 1>>>();
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  small<<<1, 128>>>();
  CHECK(cudaGetLastError() != cudaSuccess);
  CUDA(cudaDeviceSynchronize());
  FAILS(cudaMalloc(&memory, std::size_t{1} << 60), cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CUDA(cudaMalloc(&memory, 0));
  CHECK(memory == nullptr);
  CUDA(cudaMalloc(&memory, 100));
  char host[200] = {};
  FAILS(cudaMemcpy(memory, host, 200, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  FAILS(cudaMemcpy(host, memory, 4, static_cast<cudaMemcpyKind>(9)), cudaErrorInvalidMemcpyDirection);
  FAILS(cudaMemcpy(host, memory, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  FAILS(cudaFree(host), cudaErrorInvalidValue);
  CUDA(cudaFree(memory));
  FAILS(cudaFree(memory), cudaErrorInvalidValue);
  FAILS(cudaLaunchKernel(host, dim3(1), dim3(1), nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
  FAILS(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(0x1234)), cudaErrorInvalidResourceHandle);
  CHECK(!std::strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress"));
  CHECK(std::strlen(cudaGetErrorString(cudaErrorMemoryAllocation)) > 0);
  CHECK(!std::strcmp(cudaGetErrorString(cudaSuccess), "no error"));
  CHECK(!std::strcmp(cudaGetErrorName(static_cast<cudaError_t>(12345)), "unrecognized error code"));
  std::puts("ok");
}
