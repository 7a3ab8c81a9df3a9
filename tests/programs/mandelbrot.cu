// tests/programs/mandelbrot.cu - divergent loops of doubles
#include <vector>

#include "check.cuh"

__host__ __device__ int escape(double cx, double cy, int limit) {
  double x = 0, y = 0;
  int i = 0;
  for (; i < limit && x * x + y * y <= 4; ++i) {
#ifdef __CUDA_ARCH__
    const double next = __dadd_rn(__dsub_rn(__dmul_rn(x, x), __dmul_rn(y, y)), cx);
    y = __dadd_rn(__dmul_rn(__dmul_rn(2.0, x), y), cy);
#else
    const double next = x * x - y * y + cx;
    y = 2.0 * x * y + cy;
#endif
    x = next;
  }
  return i;
}

__global__ void draw(int* image, int width, int height, int limit) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) {
    image[y * width + x] = escape(-2.0 + 3.0 / 64 * x, -1.0 + 2.0 / 32 * y, limit);
  }
}

int main() {
  const int width = 64, height = 32, limit = 60;
  int* image;
  CUDA(cudaMallocManaged(&image, width * height * sizeof(int)));
  draw<<<dim3(4, 4), dim3(16, 8)>>>(image, width, height, limit);
  CUDA(cudaDeviceSynchronize());
  int wrong = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      wrong += image[y * width + x] != escape(-2.0 + 3.0 / 64 * x, -1.0 + 2.0 / 32 * y, limit);
    }
  }
  // The condition of the loop may be computed with a fused operation on one side.
  CHECK(wrong <= 2);
  std::puts("ok");
}
