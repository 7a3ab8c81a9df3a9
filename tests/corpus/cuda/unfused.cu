// tests/corpus/cuda/unfused.cu - arithmetic that an fma serves, compiled without contraction
// Exercises: mul and add, sub, neg of f32, f64, f16x2 in loops, trees and recurrences. Every kernel
// has the same parameters: n elements of a and b, `out` as many.
#include <cuda_fp16.h>

__device__ unsigned index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// One partial sum for each thread, element by element and four at a time (n a multiple of four).
extern "C" __global__ void dot(const float* a, const float* b, float* out, unsigned n) {
  float sum = 0.0f;
  const unsigned stride = gridDim.x * blockDim.x;
  const float* x = a + index();
  const float* y = b + index();
  for (const float* end = a + n; x < end; x += stride, y += stride) sum += *x * *y;
  out[index()] = sum;
}
extern "C" __global__ void dot4(const float* a, const float* b, float* out, unsigned n) {
  float sum = 0.0f;
  const unsigned stride = gridDim.x * blockDim.x;
  for (unsigned i = index(); i < n / 4; i += stride) {
    const float4 x = reinterpret_cast<const float4*>(a)[i];
    const float4 y = reinterpret_cast<const float4*>(b)[i];
    sum += x.x * y.x;
    sum += x.y * y.y;
    sum += x.z * y.z;
    sum += x.w * y.w;
  }
  out[index()] = sum;
}

// Horner's scheme: every product is the next sum's.
extern "C" __global__ void polynomial(const float* a, const float* b, float* out, unsigned n) {
  const unsigned i = index();
  if (i >= n) return;
  const float x = a[i];
  float y = b[i];
  y = y * x + 0.25f;
  y = y * x - 1.5f;
  y = y * x + 3.0f;
  y = y * x - 0.125f;
  out[i] = y * x + 1.0f;
}

// Two numbers side by side: one product of each pair becomes part of an fma.
extern "C" __global__ void complex_power(const float* a, const float* b, float* out, unsigned n) {
  const unsigned i = index();
  if (i >= n) return;
  float re = a[i], im = b[i];
  const float c = re, s = im;
  for (int k = 0; k < 8; ++k) {
    const float next = re * c - im * s;
    im = re * s + im * c;
    re = next;
  }
  out[i] = re + im;
}

extern "C" __global__ void length_squared(const float* a, const float* b, float* out, unsigned n) {
  const unsigned i = index();
  if (i >= n) return;
  const float x = a[i], y = b[i], z = x - y;
  out[i] = 1.0f - (x * x + y * y + z * z);
}

extern "C" __global__ void newton(const float* a, const float* b, float* out, unsigned n) {
  const unsigned i = index();
  if (i >= n) return;
  const double x = a[i];
  double y = b[i];
  for (int k = 0; k < 4; ++k) y = y * (2.0 - x * y);
  out[i] = static_cast<float>(y);
}

extern "C" __global__ void half_blend(const float* a, const float* b, float* out, unsigned n) {
  const unsigned i = index();
  if (i >= n) return;
  const __half2 x = __floats2half2_rn(a[i], b[i]), y = __floats2half2_rn(b[i], a[i]);
  __half2 sum = y;
  for (int k = 0; k < 4; ++k) sum = __hadd2(__hmul2(sum, x), y);
  out[i] = __low2float(sum) + __high2float(sum);
}
