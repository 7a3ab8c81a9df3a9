// tests/programs/bitonic_sort.cu - sorting by many small launches
#include <algorithm>
#include <vector>

#include "check.cuh"

__global__ void step(unsigned* data, int j, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ j;
  if (other <= i) return;
  const unsigned a = data[i], b = data[other];
  if ((a > b) == ((i & k) == 0)) data[i] = b, data[other] = a;
}

int main() {
  const int count = 1024;
  std::vector<unsigned> host(count), sorted(count);
  for (int i = 0; i < count; ++i) host[i] = i * 2654435761u;
  sorted = host;
  std::sort(sorted.begin(), sorted.end());
  unsigned* data;
  CUDA(cudaMalloc(&data, count * sizeof(unsigned)));
  CUDA(cudaMemcpy(data, host.data(), count * sizeof(unsigned), cudaMemcpyHostToDevice));
  for (int k = 2; k <= count; k *= 2) {
    for (int j = k / 2; j > 0; j /= 2) step<<<count / 256, 256>>>(data, j, k);
  }
  CUDA(cudaMemcpy(host.data(), data, count * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CHECK(host == sorted);
  std::puts("ok");
}
