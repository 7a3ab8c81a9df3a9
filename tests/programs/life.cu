// tests/programs/life.cu - generations of cells, buffers swapped by the host
#include <cstring>
#include <utility>

#include "check.cuh"

__global__ void generation(const unsigned char* now, unsigned char* then, int n) {
  const int x = threadIdx.x, y = blockIdx.x;
  int neighbours = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      if (dx != 0 || dy != 0) neighbours += now[(y + dy + n) % n * n + (x + dx + n) % n];
    }
  }
  then[y * n + x] = neighbours == 3 || (neighbours == 2 && now[y * n + x]);
}

int main() {
  const int n = 32;
  unsigned char *now, *then;
  CUDA(cudaMallocManaged(&now, n * n));
  CUDA(cudaMallocManaged(&then, n * n));
  std::memset(now, 0, n * n);
  const int glider[][2] = {{1, 0}, {2, 1}, {0, 2}, {1, 2}, {2, 2}};
  for (const auto& cell : glider) now[cell[1] * n + cell[0]] = 1;
  for (int i = 0; i < 40; ++i) {
    generation<<<n, n>>>(now, then, n);
    std::swap(now, then);
  }
  CUDA(cudaDeviceSynchronize());
  // A glider moves by one cell in four generations.
  int alive = 0;
  for (int i = 0; i < n * n; ++i) alive += now[i];
  CHECK(alive == 5);
  for (const auto& cell : glider) CHECK(now[(cell[1] + 10) * n + cell[0] + 10] == 1);
  std::puts("ok");
}
