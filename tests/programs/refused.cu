// tests/programs/refused.cu - mipmapped arrays, cubemaps, sRGB and IPC are refused by name
#include "check.cuh"

__global__ void touch(int* data) { *data = 1; }

int main() {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  CHECK(format.x == 32 && format.y == 0 && format.f == cudaChannelFormatKindFloat);
  cudaMipmappedArray_t levels = nullptr;
  FAILS(cudaMallocMipmappedArray(&levels, &format, make_cudaExtent(16, 16, 0), 2),
        cudaErrorNotSupported);
  CHECK(cudaGetLastError() == cudaErrorNotSupported);
  cudaArray_t array = nullptr;
  FAILS(cudaMalloc3DArray(&array, &format, make_cudaExtent(16, 16, 6), cudaArrayCubemap),
        cudaErrorNotSupported);
  CUDA(cudaMallocArray(&array, &format, 16, 16));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description{};
  description.sRGB = 1;
  cudaTextureObject_t texture = 0;
  FAILS(cudaCreateTextureObject(&texture, &resource, &description, nullptr), cudaErrorNotSupported);
  cudaSurfaceObject_t surface = 0;
  FAILS(cudaCreateSurfaceObject(&surface, &resource), cudaErrorInvalidValue);
  CUDA(cudaFreeArray(array));
  int* data;
  CUDA(cudaMalloc(&data, sizeof(int)));
  cudaIpcMemHandle_t handle;
  FAILS(cudaIpcGetMemHandle(&handle, data), cudaErrorNotSupported);
  touch<<<1, 1>>>(data);
  CUDA(cudaDeviceSynchronize());
  std::puts("ok");
}
