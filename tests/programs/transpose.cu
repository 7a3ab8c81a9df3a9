// tests/programs/transpose.cu - a transposition through padded shared memory
#include <vector>

#include "check.cuh"

__global__ void transpose(const int* from, int* to, int width, int height) {
  __shared__ int tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  for (int j = 0; j < 32; j += 8) {
    const int y = blockIdx.y * 32 + threadIdx.y + j;
    if (x < width && y < height) tile[threadIdx.y + j][threadIdx.x] = from[y * width + x];
  }
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  for (int j = 0; j < 32; j += 8) {
    const int y = blockIdx.x * 32 + threadIdx.y + j;
    if (x < height && y < width) to[y * height + x] = tile[threadIdx.x][threadIdx.y + j];
  }
}

int main() {
  const int width = 70, height = 45;
  std::vector<int> a(width * height), b(width * height);
  for (int i = 0; i < width * height; ++i) a[i] = i;
  int *from, *to;
  CUDA(cudaMalloc(&from, a.size() * sizeof(int)));
  CUDA(cudaMalloc(&to, a.size() * sizeof(int)));
  CUDA(cudaMemcpy(from, a.data(), a.size() * sizeof(int), cudaMemcpyHostToDevice));
  transpose<<<dim3((width + 31) / 32, (height + 31) / 32), dim3(32, 8)>>>(from, to, width, height);
  CUDA(cudaMemcpy(b.data(), to, b.size() * sizeof(int), cudaMemcpyDeviceToHost));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) CHECK(b[x * height + y] == a[y * width + x]);
  }
  std::puts("ok");
}
