// tests/programs/texture_image.cu - an image rotated through a filtered texture
#include <cmath>
#include <vector>

#include "check.cuh"

constexpr int kWidth = 40;
constexpr int kHeight = 24;

__global__ void rotate(float* out, cudaTextureObject_t image, float angle) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= kWidth || y >= kHeight) return;
  const float u = x / static_cast<float>(kWidth) - 0.5f;
  const float v = y / static_cast<float>(kHeight) - 0.5f;
  out[y * kWidth + x] = tex2D<float>(image, u * cosf(angle) - v * sinf(angle) + 0.5f,
                                     v * cosf(angle) + u * sinf(angle) + 0.5f);
}

/// The programming guide's linear filter with wrapped coordinates: weights of 8 bits.
static float filtered(const std::vector<float>& image, float u, float v) {
  const double x = (u - std::floor(static_cast<double>(u))) * kWidth - 0.5;
  const double y = (v - std::floor(static_cast<double>(v))) * kHeight - 0.5;
  const auto weight = [](double place) {
    return std::floor((place - std::floor(place)) * 256 + 0.5) / 256;
  };
  const auto at = [&](double column, double row) {
    const int i = (static_cast<int>(column) + kWidth) % kWidth;
    const int j = (static_cast<int>(row) + kHeight) % kHeight;
    return static_cast<double>(image[j * kWidth + i]);
  };
  const double a = weight(x), b = weight(y), i = std::floor(x), j = std::floor(y);
  return static_cast<float>((1 - a) * (1 - b) * at(i, j) + a * (1 - b) * at(i + 1, j) +
                            (1 - a) * b * at(i, j + 1) + a * b * at(i + 1, j + 1));
}

template <class Pixel>
static void check(const std::vector<Pixel>& pixels, const std::vector<float>& values,
                  cudaTextureReadMode mode) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<Pixel>();
  cudaArray_t array;
  CUDA(cudaMallocArray(&array, &format, kWidth, kHeight));
  CUDA(cudaMemcpy2DToArray(array, 0, 0, pixels.data(), kWidth * sizeof(Pixel),
                           kWidth * sizeof(Pixel), kHeight, cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description{};
  description.addressMode[0] = description.addressMode[1] = cudaAddressModeWrap;
  description.filterMode = cudaFilterModeLinear;
  description.readMode = mode;
  description.normalizedCoords = 1;
  cudaTextureObject_t texture = 0;
  CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  float* out;
  CUDA(cudaMalloc(&out, kWidth * kHeight * sizeof(float)));
  const float angle = 0.5f;
  const dim3 block(8, 8);
  rotate<<<dim3((kWidth + 7) / 8, (kHeight + 7) / 8), block>>>(out, texture, angle);
  CUDA(cudaGetLastError());
  std::vector<float> found(kWidth * kHeight);
  CUDA(cudaMemcpy(found.data(), out, found.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const float u = x / static_cast<float>(kWidth) - 0.5f;
      const float v = y / static_cast<float>(kHeight) - 0.5f;
      const float expected =
          filtered(values, u * std::cos(angle) - v * std::sin(angle) + 0.5f,
                   v * std::cos(angle) + u * std::sin(angle) + 0.5f);
      // A last bit of a coordinate may be a step of a weight in each direction.
      CHECK(std::fabs(found[y * kWidth + x] - expected) < 4.0f / 256);
    }
  }
  std::vector<Pixel> back(kWidth * kHeight);
  CUDA(cudaMemcpy2DFromArray(back.data(), kWidth * sizeof(Pixel), array, 0, 0,
                             kWidth * sizeof(Pixel), kHeight, cudaMemcpyDeviceToHost));
  CHECK(back == pixels);
  CUDA(cudaDestroyTextureObject(texture));
  CUDA(cudaFreeArray(array));
  CUDA(cudaFree(out));
}

int main() {
  std::vector<unsigned char> bytes(kWidth * kHeight);
  std::vector<float> normalised(kWidth * kHeight), values(kWidth * kHeight);
  for (int i = 0; i < kWidth * kHeight; ++i) {
    bytes[i] = static_cast<unsigned char>(i * 37 % 251);
    normalised[i] = bytes[i] / 255.0f;
    values[i] = std::sin(0.1f * i);
  }
  check(bytes, normalised, cudaReadModeNormalizedFloat);
  check(values, values, cudaReadModeElementType);
  std::puts("ok");
}
