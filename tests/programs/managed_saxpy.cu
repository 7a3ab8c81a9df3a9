// tests/programs/managed_saxpy.cu - managed memory, advice and prefetches
#include "check.cuh"

__global__ void saxpy(int count, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = a * x[i] + y[i];
}

int main() {
  const int count = 1 << 12;
  float *x, *y;
  CUDA(cudaMallocManaged(&x, count * sizeof(float)));
  CUDA(cudaMallocManaged(&y, count * sizeof(float)));
  for (int i = 0; i < count; ++i) x[i] = i, y[i] = 2;
#if CUDART_VERSION >= 13000
  cudaMemLocation device{};
  device.type = cudaMemLocationTypeDevice;
  CUDA(cudaMemAdvise(x, count * sizeof(float), cudaMemAdviseSetReadMostly, device));
  CUDA(cudaMemPrefetchAsync(x, count * sizeof(float), device, 0, nullptr));
#else
  CUDA(cudaMemAdvise(x, count * sizeof(float), cudaMemAdviseSetReadMostly, 0));
  CUDA(cudaMemPrefetchAsync(x, count * sizeof(float), 0, nullptr));
#endif
  saxpy<<<count / 128, 128>>>(count, 3, x, y);
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < count; ++i) CHECK(y[i] == 3.0f * i + 2);
  cudaPointerAttributes attributes;
  CUDA(cudaPointerGetAttributes(&attributes, y));
  CHECK(attributes.type == cudaMemoryTypeManaged);
  CHECK(attributes.devicePointer == y && attributes.hostPointer == y);
  CUDA(cudaFree(x));
  CUDA(cudaFree(y));
  std::puts("ok");
}
