// tests/emulator/cuda/kernels/fp8_convert.cu - e4m3 and e5m2 from floats and back
#include <cuda_fp8.h>

extern "C" __global__ void fp8_from_float(const float* in, unsigned char* e4, unsigned char* e5,
                                          int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  e4[i] = __nv_cvt_float_to_fp8(in[i], __NV_SATFINITE, __NV_E4M3);
  e5[i] = __nv_cvt_float_to_fp8(in[i], __NV_SATFINITE, __NV_E5M2);
}

extern "C" __global__ void fp8_to_float(float* e4, float* e5) {
  const int i = threadIdx.x;
  __nv_fp8_e4m3 a;
  a.__x = static_cast<unsigned char>(i);
  __nv_fp8_e5m2 b;
  b.__x = static_cast<unsigned char>(i);
  e4[i] = static_cast<float>(a);
  e5[i] = static_cast<float>(b);
}

extern "C" __global__ void fp8_pairs(const float2* in, unsigned short* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __nv_cvt_float2_to_fp8x2(in[i], __NV_SATFINITE, __NV_E4M3);
}
