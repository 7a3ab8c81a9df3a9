// tests/emulator/cuda/kernels/bfloat_math.cu - bfloat16 conversions and arithmetic
#include <cuda_bf16.h>

extern "C" __global__ void bfloat_math(const float* a, const float* b, __nv_bfloat16* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __nv_bfloat16* r = out + i * 6;
  const __nv_bfloat16 x = __float2bfloat16(a[i]), y = __float2bfloat16(b[i]);
  r[0] = x;
  r[1] = __float2bfloat16_rz(a[i]);
  r[2] = __float2bfloat16(__bfloat162float(x) * __bfloat162float(y));
  r[3] = __hfma(x, y, x);
  r[4] = __hmax(x, y);
  r[5] = __hgt(x, y) ? __hneg(x) : y;
}

extern "C" __global__ void bfloat_dot(const __nv_bfloat162* a, const __nv_bfloat162* b, float* out,
                                      int pairs) {
  float sum = 0;
  for (int i = threadIdx.x; i < pairs; i += 32) {
    const float2 x = __bfloat1622float2(a[i]), y = __bfloat1622float2(b[i]);
    sum += x.x * y.x + x.y * y.y;
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x == 0) *out = sum;
}
