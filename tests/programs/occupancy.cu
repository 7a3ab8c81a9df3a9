// tests/programs/occupancy.cu - occupancy and attributes of kernels
#include "check.cuh"

__global__ __launch_bounds__(256) void bounded(float* x) {
  __shared__ float tile[1024];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[255 - threadIdx.x];
}
__global__ void free_of_bounds(float* x) { x[threadIdx.x] *= 2; }

int main() {
  cudaFuncAttributes attributes;
  CUDA(cudaFuncGetAttributes(&attributes, bounded));
  CHECK(attributes.maxThreadsPerBlock == 256 && attributes.sharedSizeBytes == 4096);
  CHECK(attributes.numRegs > 0 && attributes.ptxVersion >= 50);
  CUDA(cudaFuncGetAttributes(&attributes, free_of_bounds));
  CHECK(attributes.maxThreadsPerBlock == 1024 && attributes.sharedSizeBytes == 0);
  int blocks = 0;
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 256, 0));
  CHECK(blocks >= 1);
  int with_more = 0;
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&with_more, bounded, 256, 40000));
  CHECK(with_more >= 1 && with_more < blocks);
  int grid = 0, block = 0;
  CUDA(cudaOccupancyMaxPotentialBlockSize(&grid, &block, free_of_bounds, 0, 0));
  CHECK(grid > 0 && block % 32 == 0 && block <= 1024);
  std::size_t shared = 0;
  CUDA(cudaOccupancyAvailableDynamicSMemPerBlock(&shared, free_of_bounds, 1, 128));
  CHECK(shared > 0);
  CUDA(cudaFuncSetCacheConfig(bounded, cudaFuncCachePreferShared));
  std::puts("ok");
}
