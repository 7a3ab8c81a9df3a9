// tests/programs/illegal_address.cu - a kernel that writes where nothing is
#include "check.cuh"

__global__ void write(int* where) { where[threadIdx.x] = 1; }

int main() {
  int* memory;
  CUDA(cudaMalloc(&memory, 128));
  write<<<1, 32>>>(memory);
  CUDA(cudaDeviceSynchronize());
  write<<<1, 32>>>(nullptr);
  CUDA(cudaGetLastError());
  FAILS(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  FAILS(cudaMemset(memory, 0, 4), cudaErrorIllegalAddress);
  CUDA(cudaDeviceReset());
  CUDA(cudaMalloc(&memory, 128));
  write<<<1, 32>>>(memory);
  CUDA(cudaDeviceSynchronize());
  std::puts("ok");
}
