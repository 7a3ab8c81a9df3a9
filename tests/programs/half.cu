// tests/programs/half.cu - arithmetic in half and bfloat16
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "check.cuh"

__global__ void compute(const float* in, float* half_out, float* bf_out) {
  const int i = threadIdx.x;
  const __half h = __float2half(in[i]);
  half_out[i] = __half2float(__hfma(h, h, __float2half(1.0f)));
  const __nv_bfloat16 b = __float2bfloat16(in[i]);
  bf_out[i] = __bfloat162float(__hadd(b, b));
}

__global__ void pairs(const float2* in, float2* out) {
  const __half2 h = __float22half2_rn(in[threadIdx.x]);
  out[threadIdx.x] = __half22float2(__hmul2(h, __float2half2_rn(2.0f)));
}

int main() {
  float *in, *h, *b;
  CUDA(cudaMallocManaged(&in, 64 * sizeof(float)));
  CUDA(cudaMallocManaged(&h, 64 * sizeof(float)));
  CUDA(cudaMallocManaged(&b, 64 * sizeof(float)));
  for (int i = 0; i < 64; ++i) in[i] = i * 0.25f;
  compute<<<1, 32>>>(in, h, b);
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 32; ++i) CHECK(h[i] == in[i] * in[i] + 1 && b[i] == 2 * in[i]);
  pairs<<<1, 32>>>(reinterpret_cast<float2*>(in), reinterpret_cast<float2*>(h));
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 64; ++i) CHECK(h[i] == 2 * in[i]);
  std::puts("ok");
}
