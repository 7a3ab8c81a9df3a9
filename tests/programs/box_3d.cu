// tests/programs/box_3d.cu - 3D allocations, copies of boxes, fills
#include <vector>

#include "check.cuh"

__global__ void number(cudaPitchedPtr volume, int width, int height) {
  const int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
  char* row = static_cast<char*>(volume.ptr) + (z * volume.ysize + y) * volume.pitch;
  if (x < width && y < height) reinterpret_cast<int*>(row)[x] = z * 10000 + y * 100 + x;
}

int main() {
  const int width = 12, height = 7, depth = 5;
  const cudaExtent extent = make_cudaExtent(width * sizeof(int), height, depth);
  cudaPitchedPtr volume;
  CUDA(cudaMalloc3D(&volume, extent));
  CUDA(cudaMemset3D(volume, 0, extent));
  number<<<dim3(height, depth), 32>>>(volume, width, height);
  std::vector<int> box(4 * 3 * 2, -1);
  cudaMemcpy3DParms copy{};
  copy.srcPtr = volume;
  copy.srcPos = make_cudaPos(2 * sizeof(int), 1, 3);
  copy.dstPtr = make_cudaPitchedPtr(box.data(), 4 * sizeof(int), 4, 3);
  copy.extent = make_cudaExtent(4 * sizeof(int), 3, 2);
  copy.kind = cudaMemcpyDeviceToHost;
  CUDA(cudaMemcpy3D(&copy));
  for (int z = 0; z < 2; ++z) {
    for (int y = 0; y < 3; ++y) {
      for (int x = 0; x < 4; ++x) {
        CHECK(box[(z * 3 + y) * 4 + x] == (z + 3) * 10000 + (y + 1) * 100 + x + 2);
      }
    }
  }
  CUDA(cudaMemset3DAsync(volume, 0xff, make_cudaExtent(8, 2, 5), nullptr));
  CUDA(cudaMemcpy3DAsync(&copy, nullptr));
  CUDA(cudaDeviceSynchronize());
  CHECK(box[0] == 30102);
  std::puts("ok");
}
