// tests/programs/zero_copy.cu - kernels on pinned host memory
#include "check.cuh"

__global__ void square(const int* in, int* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i] * in[i];
}

int main() {
  CUDA(cudaSetDeviceFlags(cudaDeviceMapHost));
  const int count = 1000;
  int *in, *out, *din, *dout;
  CUDA(cudaHostAlloc(&in, count * sizeof(int), cudaHostAllocMapped));
  CUDA(cudaMallocHost(&out, count * sizeof(int)));
  for (int i = 0; i < count; ++i) in[i] = i;
  CUDA(cudaHostGetDevicePointer(&din, in, 0));
  CUDA(cudaHostGetDevicePointer(&dout, out, 0));
  square<<<8, 128>>>(din, dout, count);
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < count; ++i) CHECK(out[i] == i * i);
  unsigned flags = 0;
  CUDA(cudaHostGetFlags(&flags, in));
  CHECK((flags & cudaHostAllocMapped) != 0);
  cudaPointerAttributes attributes;
  CUDA(cudaPointerGetAttributes(&attributes, in));
  CHECK(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == in);
  CUDA(cudaPointerGetAttributes(&attributes, &flags));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  CUDA(cudaFreeHost(in));
  CUDA(cudaFreeHost(out));
  std::puts("ok");
}
