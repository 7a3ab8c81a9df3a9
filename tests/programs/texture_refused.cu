// tests/programs/texture_refused.cu - textures, surfaces, arrays and IPC are refused by name
#include "check.cuh"

__global__ void touch(int* data) { *data = 1; }

int main() {
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  CHECK(format.x == 32 && format.y == 0 && format.f == cudaChannelFormatKindFloat);
  FAILS(cudaMallocArray(&array, &format, 16, 16), cudaErrorNotSupported);
  cudaTextureObject_t texture = 0;
  cudaResourceDesc resource{};
  cudaTextureDesc description{};
  FAILS(cudaCreateTextureObject(&texture, &resource, &description, nullptr), cudaErrorNotSupported);
  CHECK(cudaGetLastError() == cudaErrorNotSupported);
  int* data;
  CUDA(cudaMalloc(&data, sizeof(int)));
  cudaIpcMemHandle_t handle;
  FAILS(cudaIpcGetMemHandle(&handle, data), cudaErrorNotSupported);
  touch<<<1, 1>>>(data);
  CUDA(cudaDeviceSynchronize());
  std::puts("ok");
}
