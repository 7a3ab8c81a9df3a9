// tests/emulator/cuda/kernels/gemv_q8.cu - GEMV of 8-bit blocks: half scale, 32 signed bytes
#include <cuda_fp16.h>

struct Block8 {
  __half scale;
  signed char q[32];
};  // 34 bytes: words are only 2-byte aligned

__device__ int word_at(const signed char* p, int i) {
  const unsigned short* half = reinterpret_cast<const unsigned short*>(p + 4 * i);
  return static_cast<int>(half[0] | static_cast<unsigned>(half[1]) << 16);
}

// One warp a row; each lane takes one word of a block, eight lanes a block.
extern "C" __global__ void gemv_q8(const Block8* weights, const Block8* x, float* y, int rows,
                                   int blocks) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const Block8* w = weights + row * blocks;
  float sum = 0;
  for (int b = threadIdx.x / 8; b < blocks; b += 4) {
    const int i = threadIdx.x % 8;
    const int dot = __dp4a(word_at(w[b].q, i), word_at(x[b].q, i), 0);
    sum += __half2float(w[b].scale) * __half2float(x[b].scale) * static_cast<float>(dot);
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x == 0) y[row] = sum;
}

// Floats to blocks, a warp each: scale = largest magnitude / 127, rounded to nearest.
extern "C" __global__ void quantize_q8(const float* x, Block8* out) {
  const float value = x[blockIdx.x * 32 + threadIdx.x];
  float most = fabsf(value);
  for (int step = 16; step > 0; step /= 2)
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
  const float scale = most / 127.0f;
  out[blockIdx.x].q[threadIdx.x] =
      static_cast<signed char>(scale == 0.0f ? 0.0f : roundf(value / scale));
  if (threadIdx.x == 0) out[blockIdx.x].scale = __float2half(scale);
}
