// tests/emulator/cuda/kernels/attention.cu - attention in one pass over tiles of keys
#define WIDTH 32
#define TILE 32

// A block per (query tile, head), a thread per query; the sum is rescaled as the maximum grows.
extern "C" __global__ void attention(const float* q, const float* k, const float* v, float* out,
                                     int tokens, float scale, int causal) {
  __shared__ float ks[TILE][WIDTH], vs[TILE][WIDTH];
  const int query = blockIdx.x * TILE + threadIdx.x;
  const int head = blockIdx.y * tokens * WIDTH;
  float mine[WIDTH], sum[WIDTH];
  for (int d = 0; d < WIDTH; ++d) {
    mine[d] = query < tokens ? q[head + query * WIDTH + d] * scale : 0.0f;
    sum[d] = 0;
  }
  float most = -INFINITY, total = 0;
  for (int start = 0; start < tokens; start += TILE) {
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * WIDTH; i += blockDim.x) {
      const int row = i / WIDTH, d = i % WIDTH;
      const bool there = start + row < tokens;
      ks[row][d] = there ? k[head + (start + row) * WIDTH + d] : 0.0f;
      vs[row][d] = there ? v[head + (start + row) * WIDTH + d] : 0.0f;
    }
    __syncthreads();
    const int end = min(TILE, tokens - start);
    for (int j = 0; j < end; ++j) {
      if (causal && start + j > query) break;
      float score = 0;
      for (int d = 0; d < WIDTH; ++d) score += mine[d] * ks[j][d];
      const float larger = fmaxf(most, score);
      const float shrink = __expf(most - larger), weight = __expf(score - larger);
      total = total * shrink + weight;
      for (int d = 0; d < WIDTH; ++d) sum[d] = sum[d] * shrink + weight * vs[j][d];
      most = larger;
    }
  }
  if (query >= tokens) return;
  for (int d = 0; d < WIDTH; ++d) out[head + query * WIDTH + d] = sum[d] / total;
}

// One new token against a cache of keys and values, a warp for each head.
extern "C" __global__ void attention_decode(const float* q, const float* keys, const float* values,
                                            float* out, int tokens, float scale) {
  extern __shared__ float score[];
  const int lane = threadIdx.x, head = blockIdx.x;
  const float mine = q[head * WIDTH + lane] * scale;
  float most = -INFINITY;
  for (int t = 0; t < tokens; ++t) {
    float dot = mine * keys[(head * tokens + t) * WIDTH + lane];
    for (int step = 16; step > 0; step /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, step);
    if (lane == 0) score[t] = dot;
    most = fmaxf(most, dot);
  }
  __syncwarp();
  float total = 0, sum = 0;
  for (int t = 0; t < tokens; ++t) {
    const float weight = expf(score[t] - most);
    total += weight;
    sum += weight * values[(head * tokens + t) * WIDTH + lane];
  }
  out[head * WIDTH + lane] = sum / total;
}
