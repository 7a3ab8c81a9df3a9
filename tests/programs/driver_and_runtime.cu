// tests/programs/driver_and_runtime.cu - both APIs in one program
#include <cuda.h>

#include "check.cuh"

#define DRIVER(call) CHECK((call) == CUDA_SUCCESS)

__global__ void add(int* data, int amount) { data[threadIdx.x] += amount; }

int main() {
  int* data;
  CUDA(cudaMalloc(&data, 32 * sizeof(int)));
  DRIVER(cuMemsetD32(reinterpret_cast<CUdeviceptr>(data), 5, 32));
  CUcontext context = nullptr, primary = nullptr;
  DRIVER(cuCtxGetCurrent(&context));
  DRIVER(cuDevicePrimaryCtxRetain(&primary, 0));
  CHECK(context == primary);
  cudaFunction_t function;
  CUDA(cudaGetFuncBySymbol(&function, reinterpret_cast<void*>(add)));
  int amount = 4;
  void* arguments[] = {&data, &amount};
  DRIVER(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
  int host[32];
  CUDA(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
  for (int value : host) CHECK(value == 9);
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  CUDA(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 12000, cudaEnableDefault, &found));
  CHECK(found == cudaDriverEntryPointSuccess && entry != nullptr);
  DRIVER(cuDevicePrimaryCtxRelease(0));
  std::puts("ok");
}
