// tests/programs/convolution.cu - a separable filter from constant memory, with halos
#include <vector>

#include "check.cuh"

constexpr int kRadius = 3, kWidth = 2 * kRadius + 1;
__constant__ int weights[kWidth];

__global__ void filter(const int* in, int* out, int width, int height, int dx, int dy) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x >= width) return;
  int sum = 0;
  for (int k = -kRadius; k <= kRadius; ++k) {
    const int sx = min(max(x + k * dx, 0), width - 1), sy = min(max(y + k * dy, 0), height - 1);
    sum += weights[k + kRadius] * __ldg(&in[sy * width + sx]);
  }
  out[y * width + x] = sum;
}

void on_host(const std::vector<int>& in, std::vector<int>& out, const int* w, int width, int height,
             int dx, int dy) {
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      int sum = 0;
      for (int k = -kRadius; k <= kRadius; ++k) {
        const int sx = std::min(std::max(x + k * dx, 0), width - 1);
        const int sy = std::min(std::max(y + k * dy, 0), height - 1);
        sum += w[k + kRadius] * in[sy * width + sx];
      }
      out[y * width + x] = sum;
    }
  }
}

int main() {
  const int width = 90, height = 12, w[kWidth] = {1, -2, 3, 4, 3, -2, 1};
  std::vector<int> image(width * height), half(width * height), expected(width * height);
  for (int i = 0; i < width * height; ++i) image[i] = i * i % 97;
  on_host(image, half, w, width, height, 1, 0);
  on_host(half, expected, w, width, height, 0, 1);
  CUDA(cudaMemcpyToSymbol(weights, w, sizeof w));
  int *a, *b;
  CUDA(cudaMalloc(&a, image.size() * sizeof(int)));
  CUDA(cudaMalloc(&b, image.size() * sizeof(int)));
  CUDA(cudaMemcpy(a, image.data(), image.size() * sizeof(int), cudaMemcpyHostToDevice));
  filter<<<dim3(2, height), 64>>>(a, b, width, height, 1, 0);
  filter<<<dim3(2, height), 64>>>(b, a, width, height, 0, 1);
  CUDA(cudaMemcpy(image.data(), a, image.size() * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(image == expected);
  std::puts("ok");
}
