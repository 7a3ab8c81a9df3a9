// tests/emulator/cuda/kernels/half_functions.cu - functions and atomics of half and bfloat16
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void half_functions(const __half2* in, __half2* out, float* f) {
  const int i = threadIdx.x, n = blockDim.x;
  const __half2 x = in[i];
  out[i] = h2exp(x);
  out[n + i] = h2log(x);
  out[2 * n + i] = h2sqrt(x);
  out[3 * n + i] = h2rsqrt(x);
  out[4 * n + i] = h2sin(x);
  out[5 * n + i] = h2cos(x);
  out[6 * n + i] = h2rcp(x);
  out[7 * n + i] = __hmin2(x, __float2half2_rn(0.5f));
  out[8 * n + i] = __hfma2_relu(x, x, __float2half2_rn(-1.0f));
  out[9 * n + i] = h2floor(x);
  out[10 * n + i] = h2rint(x);
  out[11 * n + i] = __h2div(x, __float2half2_rn(3.0f));
  out[12 * n + i] = h2exp2(x);
  out[13 * n + i] = h2log2(x);
  f[i] = __low2float(x) + __half2float(__high2half(x));
  f[n + i] = __half2int_rn(__low2half(x));
  f[2 * n + i] = __half2ushort_rz(__low2half(x));
  f[3 * n + i] = __heq(__low2half(x), __high2half(x));
  f[4 * n + i] = __hgt(__low2half(x), __high2half(x));
}
extern "C" __global__ void half_atomics(__half* h, __half2* h2, __nv_bfloat162* b2) {
  atomicAdd(h2, __floats2half2_rn(1, 2));
#if __CUDA_ARCH__ >= 700
  atomicAdd(h, __float2half(1));
#endif
  atomicAdd(b2, __floats2bfloat162_rn(1, 2));
  __half2 v = __floats2half2_rn(threadIdx.x, 1);
  for (int d = 16; d > 0; d /= 2) v = __hadd2(v, __shfl_xor_sync(~0u, v, d));
  if (threadIdx.x == 0) h2[1] = v;
}
