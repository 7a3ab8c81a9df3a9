// tests/programs/texture_linear.cu - textures of linear and pitched memory, gather, a 1D array
#include <vector>

#include "check.cuh"

constexpr int kCount = 1000, kWidth = 30, kHeight = 20;

__global__ void reversed(int* out, cudaTextureObject_t texture) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  // The last threads read outside, which gives 0.
  if (i < kCount + 24) out[i] = tex1Dfetch<int>(texture, kCount - 1 - i);
}

__global__ void transpose(float* out, cudaTextureObject_t texture) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < kHeight && y < kWidth) out[y * kHeight + x] = tex2D<float>(texture, y, x);
}

__global__ void largest(float* out, cudaTextureObject_t texture) {
  const int x = threadIdx.x, y = blockIdx.x;
  const float4 four = tex2Dgather<float4>(texture, x + 1.0f, y + 1.0f);
  out[y * blockDim.x + x] = fmaxf(fmaxf(four.x, four.y), fmaxf(four.z, four.w));
}

static cudaTextureDesc described() {
  cudaTextureDesc description{};
  description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
  return description;
}

static void check_linear() {
  std::vector<int> values(kCount), found(kCount + 24);
  for (int i = 0; i < kCount; ++i) values[i] = i * 7 + 1;
  int *in, *out;
  CUDA(cudaMalloc(&in, kCount * sizeof(int)));
  CUDA(cudaMalloc(&out, found.size() * sizeof(int)));
  CUDA(cudaMemcpy(in, values.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = in;
  resource.res.linear.desc = cudaCreateChannelDesc<int>();
  resource.res.linear.sizeInBytes = kCount * sizeof(int);
  const cudaTextureDesc description = described();
  cudaTextureObject_t texture = 0;
  CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  reversed<<<8, 128>>>(out, texture);
  CUDA(cudaMemcpy(found.data(), out, found.size() * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount + 24; ++i) {
    CHECK(found[i] == (i < kCount ? values[kCount - 1 - i] : 0));
  }
  CUDA(cudaDestroyTextureObject(texture));
  CUDA(cudaFree(in));
  CUDA(cudaFree(out));
}

static void check_pitched() {
  std::vector<float> values(kWidth * kHeight), found(values.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.5f * static_cast<float>(i * 31 % 101);
  float *in, *out;
  size_t pitch = 0;
  CUDA(cudaMallocPitch(&in, &pitch, kWidth * sizeof(float), kHeight));
  CUDA(cudaMalloc(&out, values.size() * sizeof(float)));
  CUDA(cudaMemcpy2D(in, pitch, values.data(), kWidth * sizeof(float), kWidth * sizeof(float),
                    kHeight, cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = in;
  resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
  resource.res.pitch2D.width = kWidth;
  resource.res.pitch2D.height = kHeight;
  resource.res.pitch2D.pitchInBytes = pitch;
  const cudaTextureDesc description = described();
  cudaTextureObject_t texture = 0;
  CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  transpose<<<dim3(3, 4), dim3(8, 8)>>>(out, texture);
  CUDA(cudaMemcpy(found.data(), out, values.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) CHECK(found[x * kHeight + y] == values[y * kWidth + x]);
  }
  CUDA(cudaDestroyTextureObject(texture));

  // The same image as an array for gathers: copied on the device.
  cudaArray_t array;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  CUDA(cudaMallocArray(&array, &format, kWidth, kHeight, cudaArrayTextureGather));
  CUDA(cudaMemcpy2DToArray(array, 0, 0, in, pitch, kWidth * sizeof(float), kHeight,
                           cudaMemcpyDeviceToDevice));
  resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  largest<<<kHeight - 1, kWidth - 1>>>(out, texture);
  CUDA(cudaMemcpy(found.data(), out, values.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int y = 0; y + 1 < kHeight; ++y) {
    for (int x = 0; x + 1 < kWidth; ++x) {
      const float* const at = &values[y * kWidth + x];
      CHECK(found[y * (kWidth - 1) + x] ==
            fmaxf(fmaxf(at[0], at[1]), fmaxf(at[kWidth], at[kWidth + 1])));
    }
  }
  CUDA(cudaDestroyTextureObject(texture));
  CUDA(cudaFreeArray(array));
  CUDA(cudaFree(in));
  CUDA(cudaFree(out));
}

int main() {
  check_linear();
  check_pitched();
  std::puts("ok");
}
