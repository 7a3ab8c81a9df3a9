// tests/programs/pitched_2d.cu - pitched memory, 2D copies and fills
#include <vector>

#include "check.cuh"

__global__ void add(int* data, std::size_t pitch, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < width && y < height) reinterpret_cast<int*>(reinterpret_cast<char*>(data) + y * pitch)[x] += x;
}

int main() {
  const int width = 100, height = 20;
  int* data;
  std::size_t pitch;
  CUDA(cudaMallocPitch(&data, &pitch, width * sizeof(int), height));
  CHECK(pitch >= width * sizeof(int));
  CUDA(cudaMemset2D(data, pitch, 0, width * sizeof(int), height));
  add<<<dim3(2, height), 64>>>(data, pitch, width, height);
  std::vector<int> host(width * height, -1);
  CUDA(cudaMemcpy2D(host.data(), width * sizeof(int), data, pitch, width * sizeof(int), height,
                    cudaMemcpyDeviceToHost));
  for (int i = 0; i < width * height; ++i) CHECK(host[i] == i % width);
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaMemset2DAsync(data, pitch, 0xff, 10 * sizeof(int), height, stream));
  CUDA(cudaMemcpy2DAsync(host.data(), width * sizeof(int), data, pitch, width * sizeof(int), height,
                         cudaMemcpyDeviceToHost, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < width * height; ++i) CHECK(host[i] == (i % width < 10 ? -1 : i % width));
  FAILS(cudaMemcpy2D(data, 8, host.data(), 400, 400, 2, cudaMemcpyHostToDevice),
        cudaErrorInvalidPitchValue);
  CUDA(cudaFree(data));
  std::puts("ok");
}
