// tests/emulator/cuda/kernels/kv_cache.cu - paged key cache: append and score
#include <cuda_fp16.h>

struct Shape {
  int heads, width, page_tokens, pages_of_sequence;
};

extern "C" __global__ void append(const float* keys, const int* sequence_of, const int* position,
                                  const int* page_table, __half* pages, Shape s) {
  const int token = blockIdx.x, head = threadIdx.y;
  const int at = position[token];
  const int page = page_table[sequence_of[token] * s.pages_of_sequence + at / s.page_tokens];
  if (page < 0) return;
  const long long row =
      (static_cast<long long>(page) * s.page_tokens + at % s.page_tokens) * s.heads + head;
  for (int i = threadIdx.x; i < s.width; i += blockDim.x)
    pages[row * s.width + i] = __float2half(keys[(token * s.heads + head) * s.width + i]);
}

extern "C" __global__ void score(const float* queries, const int* lengths, const int* page_table,
                                 const __half* pages, float* scores, int max_tokens, Shape s) {
  const int sequence = blockIdx.x, head = blockIdx.y;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (int t = warp; t < lengths[sequence]; t += warps) {
    const int page = page_table[sequence * s.pages_of_sequence + t / s.page_tokens];
    const __half* row =
        pages + ((page * s.page_tokens + t % s.page_tokens) * s.heads + head) * s.width;
    float sum = 0;
    for (int i = lane; i < s.width; i += 32)
      sum += queries[(sequence * s.heads + head) * s.width + i] * __half2float(row[i]);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) scores[(sequence * s.heads + head) * max_tokens + t] = sum;
  }
}
