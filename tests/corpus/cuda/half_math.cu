// tests/corpus/cuda/half_math.cu - fp16, half2, bf16 arithmetic and conversions
// Exercises: the scoped inline asm blocks cuda_fp16.h and cuda_bf16.h print ("{ .reg .f16 ...; }"),
// add/mul/fma .f16/.f16x2/.bf16, cvt.rn.f16.f32, packing movs, setp.f16, ex2.approx.f16x2.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void half2_axpy(half2* y, const half2* x, half2 a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __hfma2(a, x[i], y[i]);
}

extern "C" __global__ void half_ops(half* out, const half* in, float* fout, int n) {
  const int i = threadIdx.x;
  const half a = in[i], b = in[i + n];
  half r = __hadd(a, __hmul(b, __float2half(0.25f)));
  if (__hlt(a, b) || __hisnan(b)) r = __hneg(r);
  r = __hsub_sat(hsqrt(__habs(r)), hexp(b));
  out[i] = __hdiv(r, __hmax(a, b));
  fout[i] = __half2float(r) + __low2float(__halves2half2(a, b));
  fout[i + 1] = static_cast<float>(__half2int_rz(a) + __half2ushort_rn(b));
  const half2 h = h2exp2(__floats2half2_rn(fout[i], 1.5f));
  fout[i + 2] = __high2float(__hmul2_sat(h, __half2half2(b)));
  out[i + 1] = __ushort_as_half(__half_as_ushort(a) ^ 0x8000);
  out[i + 2] = __int2half_rd(i);
  out[i + 3] = __hgt(a, b) ? hrcp(a) : hrsqrt(b);
  fout[i + 3] = __hbgt2(h, __half2half2(a)) ? 1.0f : 0.0f;
}

extern "C" __global__ void bf16_ops(__nv_bfloat16* out, const __nv_bfloat162* in, float* f) {
  const __nv_bfloat162 v = in[threadIdx.x];
  const float2 wide = __bfloat1622float2(v);
  f[threadIdx.x] = wide.x * wide.y;
  out[threadIdx.x] = __float2bfloat16_rn(wide.x + 1.0f);
  out[threadIdx.x + 1] = __hadd(v.x, v.y);
#if __CUDA_ARCH__ >= 800
  const __nv_bfloat162 w = __hfma2(v, v, __floats2bfloat162_rn(wide.y, 3.0f));
  out[threadIdx.x + 2] = __hmax(w.x, w.y);
  out[threadIdx.x + 3] = __hmul(w.x, __ushort_as_bfloat16(0x3f80));
#endif
  out[threadIdx.x + 4] = __float2bfloat16_rz(wide.y);
}

extern "C" __global__ void half_atomics(half2* sums, half* one, const half2* in) {
  atomicAdd(sums, in[threadIdx.x]);
  atomicAdd(one, __low2half(in[threadIdx.x]));
  const half2 s = __shfl_xor_sync(0xffffffffu, in[threadIdx.x], 4);
  sums[threadIdx.x + 1] = __hadd2(s, in[threadIdx.x]);
}
