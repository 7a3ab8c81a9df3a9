// tests/programs/monte_carlo.cu - pi by a generator in each thread
#include <cmath>

#include "check.cuh"

__device__ unsigned next(unsigned& state) {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^= state << 5;
}

__global__ void throw_darts(int each, unsigned* hits) {
  unsigned state = 1 + 7919 * (blockIdx.x * blockDim.x + threadIdx.x), mine = 0;
  for (int i = 0; i < 8; ++i) next(state);
  for (int i = 0; i < each; ++i) {
    const float x = next(state) * 2.3283064e-10f, y = next(state) * 2.3283064e-10f;
    mine += x * x + y * y < 1;
  }
  atomicAdd(hits, mine);
}

int main() {
  unsigned* hits;
  CUDA(cudaMallocManaged(&hits, sizeof(unsigned)));
  *hits = 0;
  throw_darts<<<8, 64>>>(100, hits);
  CUDA(cudaDeviceSynchronize());
  CHECK(std::fabs(4.0 * *hits / (8 * 64 * 100) - 3.14159) < 0.05);
  std::puts("ok");
}
