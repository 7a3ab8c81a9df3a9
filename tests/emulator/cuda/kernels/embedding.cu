// tests/emulator/cuda/kernels/embedding.cu - rows gathered from a half table; gradients scattered
#include <cuda_fp16.h>

extern "C" __global__ void embedding(const __half2* table, const int* tokens,
                                     const float2* positions, float2* out, int pairs,
                                     int vocabulary) {
  const int token = tokens[blockIdx.x];
  for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
    float2 v = make_float2(0, 0);
    if (token >= 0 && token < vocabulary) v = __half22float2(table[token * pairs + i]);
    const float2 p = positions[blockIdx.x * pairs + i];
    out[blockIdx.x * pairs + i] = make_float2(v.x + p.x, v.y + p.y);
  }
}

extern "C" __global__ void embedding_gradient(const float* gradient, const int* tokens,
                                              float* table, int width, int vocabulary) {
  const int token = tokens[blockIdx.x];
  if (token < 0 || token >= vocabulary) return;
  for (int i = threadIdx.x; i < width; i += blockDim.x)
    atomicAdd(&table[token * width + i], gradient[blockIdx.x * width + i]);
}
