// tests/programs/printf.cu - output of kernels
#include "check.cuh"

__global__ void say(int base, double factor) {
  if (threadIdx.x < 3) {
    std::printf("thread %d: %s %5.2f %llx %c\n", base + static_cast<int>(threadIdx.x), "has",
                threadIdx.x * factor, 0xabcdef0123ull, 'x');
  }
}

int main() {
  say<<<1, 32>>>(100, 1.5);
  CUDA(cudaDeviceSynchronize());
  std::puts("ok");
}
