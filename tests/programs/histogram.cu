// tests/programs/histogram.cu - counts in shared memory, merged by atomics
#include <vector>

#include "check.cuh"

__global__ void count_bytes(const unsigned char* data, int bytes, unsigned* bins) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < bytes; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[data[i]], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

int main() {
  const int bytes = 20000;
  std::vector<unsigned char> data(bytes);
  std::vector<unsigned> expected(256), bins(256);
  for (int i = 0; i < bytes; ++i) ++expected[data[i] = static_cast<unsigned char>(i * i + i / 3)];
  unsigned char* d;
  unsigned* dbins;
  CUDA(cudaMalloc(&d, bytes));
  CUDA(cudaMalloc(&dbins, 256 * sizeof(unsigned)));
  CUDA(cudaMemcpy(d, data.data(), bytes, cudaMemcpyHostToDevice));
  CUDA(cudaMemset(dbins, 0, 256 * sizeof(unsigned)));
  count_bytes<<<6, 192>>>(d, bytes, dbins);
  CUDA(cudaMemcpy(bins.data(), dbins, 256 * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CHECK(bins == expected);
  std::puts("ok");
}
