// tests/programs/registered.cu - registered host memory
#include <vector>

#include "check.cuh"

__global__ void negate(int* data, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = -data[i];
}

int main() {
  const int count = 3000;
  std::vector<int> host(count);
  for (int i = 0; i < count; ++i) host[i] = i;
  CUDA(cudaHostRegister(host.data(), count * sizeof(int), cudaHostRegisterMapped));
  FAILS(cudaHostRegister(host.data(), 8, 0), cudaErrorHostMemoryAlreadyRegistered);
  int* device;
  CUDA(cudaHostGetDevicePointer(&device, host.data(), 0));
  negate<<<12, 256>>>(device, count);
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < count; ++i) CHECK(host[i] == -i);
  CUDA(cudaHostUnregister(host.data()));
  FAILS(cudaHostUnregister(host.data()), cudaErrorHostMemoryNotRegistered);
  for (int i = 0; i < count; ++i) CHECK(host[i] == -i);
  std::puts("ok");
}
