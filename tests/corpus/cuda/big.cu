// tests/corpus/cuda/big.cu - many template instantiations, what the benches parse
// Exercises: volume. Register tiled GEMM of several shapes and types with unrolled inner loops, one
// switch interpreter and double math, so that the output has the mix of instructions that real
// modules have.
#include <cuda_fp16.h>

template <typename T>
struct Convert {
  static __device__ float load(T v) { return static_cast<float>(v); }
  static __device__ T store(float v) { return static_cast<T>(v); }
};
template <>
struct Convert<half> {
  static __device__ float load(half v) { return __half2float(v); }
  static __device__ half store(float v) { return __float2half(v); }
};

template <typename T, int kRows, int kColumns, int kDepth>
__global__ void tiled_gemm(T* c, const T* a, const T* b, int m, int n, int k) {
  __shared__ float sa[kDepth][16 * kRows + 1];
  __shared__ float sb[kDepth][16 * kColumns];
  const int x = threadIdx.x & 15, y = threadIdx.x >> 4;
  float acc[kRows][kColumns] = {};
  for (int t = 0; t < k; t += kDepth) {
    for (int i = threadIdx.x; i < 16 * kRows * kDepth; i += blockDim.x) {
      const int row = blockIdx.y * 16 * kRows + i / kDepth;
      sa[i % kDepth][i / kDepth] =
          row < m && t + i % kDepth < k ? Convert<T>::load(a[row * k + t + i % kDepth]) : 0.0f;
    }
    for (int i = threadIdx.x; i < 16 * kColumns * kDepth; i += blockDim.x) {
      const int column = blockIdx.x * 16 * kColumns + i % (16 * kColumns);
      const int depth = t + i / (16 * kColumns);
      sb[i / (16 * kColumns)][i % (16 * kColumns)] =
          column < n && depth < k ? Convert<T>::load(b[depth * n + column]) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDepth; ++d)
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kColumns; ++j)
          acc[i][j] = fmaf(sa[d][y * kRows + i], sb[d][x * kColumns + j], acc[i][j]);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const int row = (blockIdx.y * 16 + y) * kRows + i,
                column = (blockIdx.x * 16 + x) * kColumns + j;
      if (row < m && column < n) c[row * n + column] = Convert<T>::store(acc[i][j]);
    }
}

#define INSTANTIATE(T, R, C, D) \
  template __global__ void tiled_gemm<T, R, C, D>(T*, const T*, const T*, int, int, int)
#ifndef BIG_SMALL
INSTANTIATE(float, 8, 8, 8);
INSTANTIATE(half, 8, 8, 8);
INSTANTIATE(half, 4, 8, 16);
INSTANTIATE(float, 4, 8, 16);
#endif
INSTANTIATE(half, 8, 4, 16);
INSTANTIATE(float, 8, 4, 8);
INSTANTIATE(float, 4, 4, 8);
INSTANTIATE(half, 4, 4, 8);
INSTANTIATE(double, 4, 4, 4);
INSTANTIATE(int, 2, 4, 8);
#undef INSTANTIATE

extern "C" __global__ void interpreter(double* stack, const int* program, int length) {
  double x = stack[0], y = stack[1];
  for (int pc = 0; pc < length; ++pc) {
    switch (program[pc]) {
      case 0:
        x = x + y;
        break;
      case 1:
        x = x * y;
        break;
      case 2:
        x = x / y;
        break;
      case 3:
        x = sqrt(x);
        break;
      case 4:
        x = sin(x);
        break;
      case 5:
        x = exp(y);
        break;
      case 6: {
        const double t = x;
        x = y;
        y = t;
        break;
      }
      case 7:
        y = log(x);
        break;
      case 8:
        y = pow(x, y);
        break;
      case 9:
        x = fmod(x, y);
        break;
      case 10:
        x = floor(y);
        break;
      default:
        return;
    }
    stack[pc + 2] = x;
  }
  stack[0] = x;
}
