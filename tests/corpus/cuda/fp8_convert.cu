// tests/corpus/cuda/fp8_convert.cu - fp8 conversions and integer dequantisation tricks
// Exercises: cvt.rn.satfinite.e4m3x2.f32, cvt.rn.f16x2.e5m2x2 (sm_89+), lop3, prmt, half magic
// numbers.
#include <cuda_fp8.h>

extern "C" __global__ void to_fp8(unsigned short* out, const float2* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = __nv_cvt_float2_to_fp8x2(in[i], __NV_SATFINITE, __NV_E4M3);
  out[i + n] = __nv_cvt_float2_to_fp8x2(in[i], __NV_SATFINITE, __NV_E5M2);
}

extern "C" __global__ void from_fp8(float2* out, const unsigned short* in) {
  const __half2_raw raw = __nv_cvt_fp8x2_to_halfraw2(in[threadIdx.x], __NV_E4M3);
  const __half2_raw other = __nv_cvt_fp8x2_to_halfraw2(in[threadIdx.x + 64], __NV_E5M2);
  const float2 a = __half22float2(__half2(raw));
  const float2 b = __half22float2(__half2(other));
  out[threadIdx.x] = make_float2(a.x + b.x, a.y * b.y);
}

extern "C" __global__ void nibbles(half2* out, const unsigned* in) {
  const unsigned q = in[threadIdx.x];
  unsigned lo, hi;
  asm("lop3.b32 %0, %1, 0x000f000f, 0x64006400, 0xea;" : "=r"(lo) : "r"(q));
  asm("lop3.b32 %0, %1, 0x00f000f0, 0x64006400, 0xEA;" : "=r"(hi) : "r"(q));
  const half2 bias = __half2half2(__float2half(1024.0f));
  out[2 * threadIdx.x] = __hsub2(*reinterpret_cast<half2*>(&lo), bias);
  out[2 * threadIdx.x + 1] = __hsub2(*reinterpret_cast<half2*>(&hi), bias);
}

extern "C" __global__ void raw_cvt(unsigned* out, const float* in) {
#if __CUDA_ARCH__ >= 890
  unsigned short packed;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(packed) : "f"(in[0]), "f"(in[1]));
  unsigned back;
  asm("{ cvt.rn.f16x2.e4m3x2 %0, %1; }\n" : "=r"(back) : "h"(packed));
  asm("cvt.rn.relu.f16x2.e5m2x2 %0, %1;" : "=r"(out[2]) : "h"(packed));
  out[0] = packed;
  out[1] = back;
#else
  out[0] = __float_as_uint(in[0]) >> 24;
#endif
#if __CUDA_ARCH__ >= 800
  unsigned tf32;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(tf32) : "f"(in[2]));
  asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(out[3]) : "f"(in[3]), "f"(in[4]));
  out[4] = tf32;
#endif
}
