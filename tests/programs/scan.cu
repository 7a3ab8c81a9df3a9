// tests/programs/scan.cu - inclusive sums over several blocks in three launches
#include <vector>

#include "check.cuh"

constexpr int kBlock = 256;

__global__ void scan_blocks(const int* in, int* out, int* sums, int count) {
  __shared__ int buffer[2][kBlock];
  const int i = blockIdx.x * kBlock + threadIdx.x;
  int now = 0;
  buffer[0][threadIdx.x] = i < count ? in[i] : 0;
  __syncthreads();
  for (int step = 1; step < kBlock; step *= 2) {
    int value = buffer[now][threadIdx.x];
    if (threadIdx.x >= step) value += buffer[now][threadIdx.x - step];
    buffer[1 - now][threadIdx.x] = value;
    now = 1 - now;
    __syncthreads();
  }
  if (i < count) out[i] = buffer[now][threadIdx.x];
  if (sums != nullptr && threadIdx.x == kBlock - 1) sums[blockIdx.x] = buffer[now][kBlock - 1];
}

__global__ void add_sums(int* out, const int* sums, int count) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (blockIdx.x > 0 && i < count) out[i] += sums[blockIdx.x - 1];
}

int main() {
  const int count = 5000, blocks = (count + kBlock - 1) / kBlock;
  std::vector<int> in(count), out(count);
  for (int i = 0; i < count; ++i) in[i] = i % 9 - 3;
  int *din, *dout, *sums;
  CUDA(cudaMalloc(&din, count * sizeof(int)));
  CUDA(cudaMalloc(&dout, count * sizeof(int)));
  CUDA(cudaMalloc(&sums, blocks * sizeof(int)));
  CUDA(cudaMemcpy(din, in.data(), count * sizeof(int), cudaMemcpyHostToDevice));
  scan_blocks<<<blocks, kBlock>>>(din, dout, sums, count);
  scan_blocks<<<1, kBlock>>>(sums, sums, nullptr, blocks);
  add_sums<<<blocks, kBlock>>>(dout, sums, count);
  CUDA(cudaMemcpy(out.data(), dout, count * sizeof(int), cudaMemcpyDeviceToHost));
  int sum = 0;
  for (int i = 0; i < count; ++i) CHECK(out[i] == (sum += in[i]));
  std::puts("ok");
}
