// tests/programs/stencil.cu - heat in a plate, float4 loads and unrolled loops
#include <utility>
#include <vector>

#include "check.cuh"

__global__ void heat(const float* now, float* then, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x <= 0 || y <= 0 || x >= width - 1 || y >= height - 1) return;
  const float* c = now + y * width + x;
  then[y * width + x] = 0.25f * (c[-1] + c[1] + c[-width] + c[width]);
}

__global__ void total(const float4* data, float* sums, int quads) {
  float sum = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < quads; i += blockDim.x) {
    const float4 v = data[i];
    sum += (v.x + v.y) + (v.z + v.w);
  }
  sums[threadIdx.x] = sum;
}

int main() {
  const int width = 64, height = 32, steps = 10;
  std::vector<float> now(width * height, 0), then;
  for (int x = 0; x < width; ++x) now[x] = 1024;
  float *a, *b, *sums;
  CUDA(cudaMalloc(&a, now.size() * sizeof(float)));
  CUDA(cudaMalloc(&b, now.size() * sizeof(float)));
  CUDA(cudaMallocManaged(&sums, 32 * sizeof(float)));
  CUDA(cudaMemcpy(a, now.data(), now.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(b, a, now.size() * sizeof(float), cudaMemcpyDeviceToDevice));
  for (int i = 0; i < steps; ++i) {
    heat<<<dim3(4, 4), dim3(16, 8)>>>(a, b, width, height);
    std::swap(a, b);
    then = now;
    for (int y = 1; y < height - 1; ++y) {
      for (int x = 1; x < width - 1; ++x) {
        const float* c = &now[y * width + x];
        then[y * width + x] = 0.25f * (c[-1] + c[1] + c[-width] + c[width]);
      }
    }
    now.swap(then);
  }
  total<<<1, 32>>>(reinterpret_cast<float4*>(a), sums, width * height / 4);
  then.assign(now.size(), -1);
  CUDA(cudaMemcpy(then.data(), a, now.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(now == then);
  double sum = 0, expected = 0;
  for (int i = 0; i < 32; ++i) sum += sums[i];
  for (float value : now) expected += value;
  CHECK(std::abs(sum - expected) < 1);
  std::puts("ok");
}
