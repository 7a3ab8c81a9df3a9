// tests/programs/separate_main.cu - kernels of one file call functions of another (nvcc -rdc=true)
#include "check.cuh"

extern __device__ int shared_counter;
__device__ int weigh(int x);

__global__ void work(int* out) {
  out[threadIdx.x] = weigh(threadIdx.x);
  atomicAdd(&shared_counter, 1);
}

int counter_of_other_file();

int main() {
  int* out;
  CUDA(cudaMallocManaged(&out, 32 * sizeof(int)));
  work<<<1, 32>>>(out);
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 32; ++i) CHECK(out[i] == 3 * i + 1);
  CHECK(counter_of_other_file() == 132);
  std::puts("ok");
}
