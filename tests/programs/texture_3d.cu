// tests/programs/texture_3d.cu - a volume: points, trilinear filter, borders, pitched copies
#include <vector>

#include "check.cuh"

constexpr int kX = 8, kY = 6, kZ = 5;

__global__ void points(short2* out, cudaTextureObject_t volume) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= kX * kY * kZ) return;
  out[i] = tex3D<short2>(volume, i % kX + 0.5f, i / kX % kY + 0.5f, i / (kX * kY) + 0.5f);
}

__global__ void middles(float* out, cudaTextureObject_t volume) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= kX * kY * kZ) return;
  out[i] = tex3D<float>(volume, i % kX + 1.0f, i / kX % kY + 0.75f, i / (kX * kY) + 0.5f);
}

static cudaArray_t volume_of(const cudaChannelFormatDesc& format, void* data, size_t element) {
  cudaArray_t array;
  const cudaExtent extent = make_cudaExtent(kX, kY, kZ);
  CUDA(cudaMalloc3DArray(&array, &format, extent));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(data, kX * element, kX, kY);
  copy.dstArray = array;
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  CUDA(cudaMemcpy3D(&copy));
  cudaChannelFormatDesc found{};
  cudaExtent size{};
  unsigned flags = 1;
  CUDA(cudaArrayGetInfo(&found, &size, &flags, array));
  CHECK(found.x == format.x && found.y == format.y && found.f == format.f);
  CHECK(size.width == kX && size.height == kY && size.depth == kZ && flags == 0);
  return array;
}

static cudaTextureObject_t texture_of(cudaArray_t array, cudaTextureFilterMode filter,
                                      cudaTextureAddressMode mode) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description{};
  for (auto& each : description.addressMode) each = mode;
  description.filterMode = filter;
  description.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture = 0;
  CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  return texture;
}

static void check_points() {
  std::vector<short2> values(kX * kY * kZ), found(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = {static_cast<short>(i), static_cast<short>(-2 * static_cast<int>(i))};
  }
  cudaArray_t array = volume_of(cudaCreateChannelDesc<short2>(), values.data(), sizeof(short2));
  const cudaTextureObject_t texture =
      texture_of(array, cudaFilterModePoint, cudaAddressModeClamp);
  short2* out;
  CUDA(cudaMalloc(&out, values.size() * sizeof(short2)));
  points<<<2, 128>>>(out, texture);
  CUDA(cudaMemcpy(found.data(), out, values.size() * sizeof(short2), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < values.size(); ++i) {
    CHECK(found[i].x == values[i].x && found[i].y == values[i].y);
  }
  CUDA(cudaDestroyTextureObject(texture));
  CUDA(cudaFreeArray(array));
  CUDA(cudaFree(out));
}

static void check_middles() {
  std::vector<float> values(kX * kY * kZ), found(values.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i % 97);
  cudaArray_t array = volume_of(cudaCreateChannelDesc<float>(), values.data(), sizeof(float));
  const cudaTextureObject_t texture =
      texture_of(array, cudaFilterModeLinear, cudaAddressModeBorder);
  float* out;
  CUDA(cudaMalloc(&out, values.size() * sizeof(float)));
  middles<<<2, 128>>>(out, texture);
  CUDA(cudaMemcpy(found.data(), out, values.size() * sizeof(float), cudaMemcpyDeviceToHost));
  const auto at = [&](int x, int y, int z) {
    return x < kX && y < kY ? values[(z * kY + y) * kX + x] : 0.0f;
  };
  for (int i = 0; i < kX * kY * kZ; ++i) {
    const int x = i % kX, y = i / kX % kY, z = i / (kX * kY);
    const float expected = 0.375f * (at(x, y, z) + at(x + 1, y, z)) +
                           0.125f * (at(x, y + 1, z) + at(x + 1, y + 1, z));
    CHECK(found[i] == expected);
  }
  // Rows of a slice to another array, and back.
  cudaArray_t other = volume_of(cudaCreateChannelDesc<float>(), values.data(), sizeof(float));
  cudaMemcpy3DParms copy{};
  copy.srcArray = array;
  copy.srcPos = make_cudaPos(2, 1, 3);
  copy.dstArray = other;
  copy.extent = make_cudaExtent(4, 3, 1);
  copy.kind = cudaMemcpyDeviceToDevice;
  CUDA(cudaMemcpy3D(&copy));
  cudaMemcpy3DParms read{};
  read.srcArray = other;
  read.dstPtr = make_cudaPitchedPtr(found.data(), kX * sizeof(float), kX, kY);
  read.extent = make_cudaExtent(kX, kY, kZ);
  read.kind = cudaMemcpyDeviceToHost;
  CUDA(cudaMemcpy3D(&read));
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 4; ++x) CHECK(found[y * kX + x] == at(x + 2, y + 1, 3));
  }
  CHECK(found[4] == values[4]);
  CUDA(cudaDestroyTextureObject(texture));
  CUDA(cudaFreeArray(array));
  CUDA(cudaFreeArray(other));
  CUDA(cudaFree(out));
}

int main() {
  check_points();
  check_middles();
  std::puts("ok");
}
