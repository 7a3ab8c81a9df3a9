// tests/programs/atomics.cu - atomic operations on global memory
#include "check.cuh"

__global__ void operate(int* ints, unsigned long long* longs, float* floats, unsigned* lock,
                        int* guarded) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&ints[0], 1);
  atomicSub(&ints[1], 2);
  atomicMax(&ints[2], i);
  atomicMin(&ints[3], -i);
  atomicAnd(&ints[4], ~(1 << (i % 8)));
  atomicOr(&ints[5], 1 << (i % 8));
  atomicXor(&ints[6], 1 << (i % 4));
  atomicAdd(&longs[0], 1ull << 33);
  atomicAdd(&floats[0], 0.5f);
  atomicInc(reinterpret_cast<unsigned*>(&ints[7]), 99);
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0u, 1u) != 0u) {
    }
    __threadfence();
    *const_cast<volatile int*>(guarded) = *const_cast<volatile int*>(guarded) + 1;
    __threadfence();
    atomicExch(lock, 0u);
  }
}

int main() {
  int* ints;
  unsigned long long* longs;
  float* floats;
  unsigned* lock;
  CUDA(cudaMallocManaged(&ints, 16 * sizeof(int)));
  CUDA(cudaMallocManaged(&longs, sizeof(*longs)));
  CUDA(cudaMallocManaged(&floats, sizeof(float)));
  CUDA(cudaMallocManaged(&lock, sizeof(unsigned)));
  for (int i = 0; i < 16; ++i) ints[i] = 0;
  ints[4] = 0xff;
  *longs = 5;
  *floats = 0;
  *lock = 0;
  operate<<<4, 64>>>(ints, longs, floats, lock, ints + 8);
  CUDA(cudaDeviceSynchronize());
  CHECK(ints[0] == 256 && ints[1] == -512 && ints[2] == 255 && ints[3] == -255);
  CHECK(ints[4] == 0 && ints[5] == 0xff && ints[6] == 0 && ints[7] == 56);
  CHECK(*longs == 5 + (256ull << 33) && *floats == 128);
  CHECK(ints[8] == 4);
  std::puts("ok");
}
