// tests/emulator/cuda/kernels/half_math.cu - half and half2 arithmetic, comparison, conversion
#include <cuda_fp16.h>

extern "C" __global__ void half_math(const __half* a, const __half* b, __half* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __half x = a[i], y = b[i];
  __half* r = out + i * 10;
  r[0] = __hadd(x, y);
  r[1] = __hsub(x, y);
  r[2] = __hmul(x, y);
  r[3] = __hfma(x, y, x);
  r[4] = __hneg(__habs(y));
  r[5] = __hlt(x, y) ? x : y;
  r[6] = __float2half_rz(__half2float(x) * 1.00048828125f);
  r[7] = __int2half_rn(__half2int_rd(x));
  r[8] = __hadd_sat(x, __float2half(0.25f));
  r[9] = __ushort_as_half(__half_as_ushort(x) ^ 0x8000u);
}

extern "C" __global__ void half_pairs(const __half2* a, const __half2* b, __half2* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __half2 x = a[i], y = b[i];
  __half2* r = out + i * 5;
  r[0] = __hfma2(x, y, __float2half2_rn(1.5f));
  r[1] = __hadd2(__lowhigh2highlow(x), y);
  r[2] = __halves2half2(__high2half(x), __low2half(y));
  r[3] = __hgt2(x, y);
  r[4] = __hmul2(x, __low2half2(y));
}

extern "C" __global__ void half_axpy(float alpha, const __half* x, const __half* y, float* out,
                                     int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = alpha * __half2float(x[i]) + __half2float(y[i]);
}
