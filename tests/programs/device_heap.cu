// tests/programs/device_heap.cu - kernels that allocate and free
#include "check.cuh"

__global__ void build(int** lists) {
  int* mine = static_cast<int*>(malloc(8 * sizeof(int)));
  for (int i = 0; i < 8; ++i) mine[i] = threadIdx.x * 8 + i;
  lists[threadIdx.x] = mine;
}
__global__ void sum_up(int** lists, int* sum) {
  int mine = 0;
  for (int i = 0; i < 8; ++i) mine += lists[threadIdx.x][i];
  atomicAdd(sum, mine);
  free(lists[threadIdx.x]);
}

int main() {
  CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1 << 20));
  int** lists;
  int* sum;
  CUDA(cudaMalloc(&lists, 64 * sizeof(int*)));
  CUDA(cudaMallocManaged(&sum, sizeof(int)));
  *sum = 0;
  build<<<1, 64>>>(lists);
  sum_up<<<1, 64>>>(lists, sum);
  CUDA(cudaDeviceSynchronize());
  CHECK(*sum == 512 * 511 / 2);
  std::puts("ok");
}
