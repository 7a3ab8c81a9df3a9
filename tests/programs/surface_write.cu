// tests/programs/surface_write.cu - layers written through a surface, then read through a texture
#include <vector>

#include "check.cuh"

constexpr int kWidth = 20, kHeight = 12, kLayers = 3;

__global__ void draw(cudaSurfaceObject_t surface, int layer) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const uchar4 pixel = make_uchar4(x, y, layer, x ^ y);
  // Threads outside of the image: what they write is dropped.
  surf2DLayeredwrite(pixel, surface, x * sizeof(uchar4), y, layer, cudaBoundaryModeZero);
}

__global__ void invert(cudaSurfaceObject_t surface, int layer) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= kWidth || y >= kHeight) return;
  uchar4 pixel = surf2DLayeredread<uchar4>(surface, x * sizeof(uchar4), y, layer);
  pixel.w = 255 - pixel.w;
  surf2DLayeredwrite(pixel, surface, x * sizeof(uchar4), y, layer);
}

__global__ void read(uchar4* out, cudaTextureObject_t texture, int layer) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= kWidth || y >= kHeight) return;
  out[(layer * kHeight + y) * kWidth + x] =
      tex2DLayered<uchar4>(texture, x + 0.5f, y + 0.5f, layer);
}

int main() {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
  cudaArray_t array;
  CUDA(cudaMalloc3DArray(&array, &format, make_cudaExtent(kWidth, kHeight, kLayers),
                         cudaArrayLayered | cudaArraySurfaceLoadStore));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface = 0;
  CUDA(cudaCreateSurfaceObject(&surface, &resource));
  cudaTextureDesc description{};
  description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
  cudaTextureObject_t texture = 0;
  CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  uchar4* out;
  const size_t count = kWidth * kHeight * kLayers;
  CUDA(cudaMalloc(&out, count * sizeof(uchar4)));
  const dim3 grid(3, 2), block(8, 8);
  for (int layer = 0; layer < kLayers; ++layer) {
    draw<<<grid, block>>>(surface, layer);
    invert<<<grid, block>>>(surface, layer);
    read<<<grid, block>>>(out, texture, layer);
  }
  std::vector<uchar4> found(count);
  CUDA(cudaMemcpy(found.data(), out, count * sizeof(uchar4), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < count; ++i) {
    const int x = i % kWidth, y = i / kWidth % kHeight, layer = i / (kWidth * kHeight);
    CHECK(found[i].x == x && found[i].y == y && found[i].z == layer);
    CHECK(found[i].w == 255 - (x ^ y));
  }
  cudaResourceDesc same{};
  CUDA(cudaGetSurfaceObjectResourceDesc(&same, surface));
  CHECK(same.resType == cudaResourceTypeArray && same.res.array.array == array);
  CUDA(cudaDestroySurfaceObject(surface));
  CUDA(cudaDestroyTextureObject(texture));
  FAILS(cudaDestroyTextureObject(texture), cudaErrorInvalidValue);
  CUDA(cudaFreeArray(array));
  CUDA(cudaFree(out));
  std::puts("ok");
}
