// tests/programs/cooperative.cu - a grid that waits for itself
#include <cooperative_groups.h>

#include <vector>

#include "check.cuh"

namespace cg = cooperative_groups;

__global__ void smooth(float* a, float* b, int count, int rounds) {
  cg::grid_group grid = cg::this_grid();
  for (int round = 0; round < rounds; ++round) {
    for (int i = grid.thread_rank(); i < count; i += grid.size()) {
      const float left = a[i == 0 ? count - 1 : i - 1], right = a[i == count - 1 ? 0 : i + 1];
      b[i] = left + right;
    }
    grid.sync();
    float* const other = a;
    a = b;
    b = other;
  }
}

__global__ void tiles(int* out) {
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int value = tile.thread_rank();
  for (int step = 4; step > 0; step /= 2) value += tile.shfl_down(value, step);
  if (tile.thread_rank() == 0) out[threadIdx.x / 8] = value;
}

int main() {
  int count = 1000, rounds = 3;
  std::vector<float> host(count), expected(count), next(count);
  for (int i = 0; i < count; ++i) host[i] = expected[i] = i % 4;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < count; ++i) next[i] = expected[(i + count - 1) % count] + expected[(i + 1) % count];
    expected = next;
  }
  float *a, *b;
  CUDA(cudaMalloc(&a, count * sizeof(float)));
  CUDA(cudaMalloc(&b, count * sizeof(float)));
  CUDA(cudaMemcpy(a, host.data(), count * sizeof(float), cudaMemcpyHostToDevice));
  void* arguments[] = {&a, &b, &count, &rounds};
  CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(smooth), 4, 128, arguments, 0, nullptr));
  CUDA(cudaMemcpy(host.data(), b, count * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(host == expected);
  FAILS(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(smooth), 100000, 1024, arguments, 0,
                                    nullptr),
        cudaErrorCooperativeLaunchTooLarge);
  int* sums;
  CUDA(cudaMallocManaged(&sums, 4 * sizeof(int)));
  tiles<<<1, 32>>>(sums);
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 4; ++i) CHECK(sums[i] == 28);
  std::puts("ok");
}
