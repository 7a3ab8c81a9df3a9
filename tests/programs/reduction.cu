// tests/programs/reduction.cu - a sum by warp shuffles, instantiated for several block sizes
#include <vector>

#include "check.cuh"

template <int kThreads>
__global__ void sum(const int* values, int count, int* result) {
  __shared__ int of_warp[kThreads / 32];
  int mine = 0;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < count; i += gridDim.x * kThreads) {
    mine += values[i];
  }
  for (int step = 16; step > 0; step /= 2) mine += __shfl_down_sync(0xffffffff, mine, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    int total = 0;
    for (int part : of_warp) total += part;
    atomicAdd(result, total);
  }
}

template <int kThreads>
void run(const int* values, int count, int expected) {
  int* result;
  CUDA(cudaMalloc(&result, sizeof(int)));
  CUDA(cudaMemset(result, 0, sizeof(int)));
  sum<kThreads><<<4, kThreads>>>(values, count, result);
  int total = 0;
  CUDA(cudaMemcpy(&total, result, sizeof total, cudaMemcpyDeviceToHost));
  CHECK(total == expected);
  CUDA(cudaFree(result));
}

int main() {
  const int count = 10007;
  std::vector<int> values(count);
  int expected = 0;
  for (int i = 0; i < count; ++i) expected += values[i] = i % 13 - 5;
  int* d;
  CUDA(cudaMalloc(&d, count * sizeof(int)));
  CUDA(cudaMemcpy(d, values.data(), count * sizeof(int), cudaMemcpyHostToDevice));
  run<64>(d, count, expected);
  run<128>(d, count, expected);
  run<512>(d, count, expected);
  std::puts("ok");
}
