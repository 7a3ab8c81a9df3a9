// tests/programs/managed_variable.cu - a __managed__ variable, read and written by both sides
#include "check.cuh"

__device__ __managed__ int total = 3;
__managed__ float list[64];

__global__ void work() {
  list[threadIdx.x] *= 2;
  atomicAdd(&total, 1);
}

int main() {
  for (int i = 0; i < 64; ++i) list[i] = i;
  CHECK(total == 3);
  total = 10;
  work<<<1, 64>>>();
  CUDA(cudaDeviceSynchronize());
  CHECK(total == 74);
  for (int i = 0; i < 64; ++i) CHECK(list[i] == 2.0f * i);
  std::puts("ok");
}
