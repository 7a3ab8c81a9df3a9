// tests/corpus/cuda/passes.cu - kernels that the passes have work in
// Exercises: products and sums in all float types, index arithmetic, loops that test their index,
// values nobody reads, branches that are decided at compile time. Every kernel is `(out, in, n)`.
#include <cuda_fp16.h>

// One product and one sum for each element.
extern "C" __global__ void dot(float* out, const float* in, int n) {
  const int me = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int i = me; i < n; i += gridDim.x * blockDim.x) sum += in[i] * in[n - 1 - i];
  out[me] = sum;
}

extern "C" __global__ void polynomial(float* out, const float* in, int n) {
  const int me = blockIdx.x * blockDim.x + threadIdx.x;
  if (me >= n) return;
  const float x = in[me];
  float y = 3.0f;
  y = y * x + 2.0f;
  y = y * x - 5.0f;
  y = 7.0f - y * x;
  const double d = x;
  out[me] = y + static_cast<float>(d * d + 4.0 * d - 1.0);
}

extern "C" __global__ void half_blend(float* out, const float* in, int n) {
  const int me = blockIdx.x * blockDim.x + threadIdx.x;
  if (me >= n) return;
  const half2 a = __floats2half2_rn(in[me], 2.0f), b = __floats2half2_rn(1.0f, in[me]);
  const half2 sum = __hadd2(__hmul2(a, b), a);
  const half low = __hadd(__hmul(__low2half(sum), __high2half(a)), __float2half(1.0f));
  out[me] = __half2float(low) + __half2float(__high2half(sum));
}

// The inner loop of a product of matrices with the edge inside: its condition parts it in two.
extern "C" __global__ void edge(float* out, const float* in, int n) {
  const int me = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
#pragma unroll 1
  for (int t = 0; t < 64; ++t) {
    if (t < n - 480) {
      sum += in[t] * 2.0f;
    } else {
      sum -= 1.0f;
    }
  }
  out[me] = sum;
}

template <int kMode>
__device__ float mode(float x) {
  const int unused = kMode * 3 + 1;
  if (kMode == 1) return x + 1.0f;
  if (kMode == 2) return x * static_cast<float>(unused);
  return x;
}

extern "C" __global__ void modes(float* out, const float* in, int n) {
  const int me = blockIdx.x * blockDim.x + threadIdx.x;
  if (me >= n) return;
  const int row = me / 8, column = me % 8;
  out[row * 8 + column] = mode<1>(in[me]) + mode<2>(in[me]) + mode<0>(in[me]);
}
