// tests/programs/in_library.cu - a library (-DLIBRARY) with its own runtime
#include "check.cuh"

#ifdef LIBRARY

namespace {

__global__ void halve(float* data, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= 0.5f;
}

/// Calls the runtime before main.
int count_of_devices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : -1;
}
const int devices = count_of_devices();

}  // namespace

int halve_on_device(float* data, int count) {
  halve<<<(count + 63) / 64, 64>>>(data, count);
  return cudaGetLastError() == cudaSuccess ? devices : -1;
}

#else

int halve_on_device(float* data, int count);

__global__ void count_up(float* data) { data[threadIdx.x] = threadIdx.x; }

int main() {
  float *data, host[100];
  CUDA(cudaMalloc(&data, sizeof host));
  count_up<<<1, 100>>>(data);
  CHECK(halve_on_device(data, 100) == 1);
  CUDA(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 100; ++i) CHECK(host[i] == i * 0.5f);
  CUDA(cudaFree(data));
  std::puts("ok");
}

#endif
