// tests/emulator/cuda/kernels/gemv_q4.cu - GEMV of 4-bit blocks
#include <cuda_fp16.h>

struct Block4 {
  __half scale;
  unsigned char q[16];  // element i: low nibble of byte i; element i + 16: its high nibble
};

// x as 8-bit blocks in arrays apart: scales, sums of the quants, words.
extern "C" __global__ void gemv_q4(const Block4* weights, const float2* x_scale_sum,
                                   const int* x_words, float* y, int blocks) {
  __shared__ float of_warp[4];
  const Block4* w = weights + blockIdx.x * blocks;
  float sum = 0;
  for (int b = threadIdx.x; b < blocks; b += blockDim.x) {
    int dot = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      unsigned word = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) word |= static_cast<unsigned>(w[b].q[4 * i + j]) << (8 * j);
      dot = __dp4a(static_cast<int>(word & 0x0f0f0f0fu), x_words[b * 8 + i], dot);
      dot = __dp4a(static_cast<int>(word >> 4 & 0x0f0f0f0fu), x_words[b * 8 + 4 + i], dot);
    }
    const float2 other = x_scale_sum[b];
    sum += __half2float(w[b].scale) * (static_cast<float>(dot) - 8.0f * other.y) * other.x;
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = of_warp[0] + of_warp[1] + of_warp[2] + of_warp[3];
}

extern "C" __global__ void unpack_q4(const Block4* in, __half* out) {
  const Block4& block = in[blockIdx.x];
  const int i = threadIdx.x % 16, high = threadIdx.x / 16;
  const int q = (block.q[i] >> (4 * high) & 15) - 8;
  out[blockIdx.x * 32 + threadIdx.x] = __hmul(block.scale, __int2half_rn(q));
}
