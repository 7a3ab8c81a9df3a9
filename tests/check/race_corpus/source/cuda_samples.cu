// tests/check/race_corpus/source/cuda_samples.cu - shared memory as samples use it
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void cg_rank_sum(const int* in, int* out) {
  __shared__ int partial[32];
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  int v = in[blockIdx.x * block.size() + block.thread_rank()];
  v = cg::reduce(warp, v, cg::plus<int>());
  if (warp.thread_rank() == 0) partial[warp.meta_group_rank()] = v;
  block.sync();
  if (warp.meta_group_rank() == 0) {
    int x = block.thread_rank() < warp.meta_group_size() ? partial[warp.thread_rank()] : 0;
    x = cg::reduce(warp, x, cg::plus<int>());
    if (warp.thread_rank() == 0) out[blockIdx.x] = x;
  }
}
extern "C" __global__ void reduce_shared(const float* in, float* out, unsigned n) {
  extern __shared__ float s[];
  unsigned t = threadIdx.x, i = blockIdx.x * (blockDim.x * 2) + t;
  float sum = i < n ? in[i] : 0.f;
  if (i + blockDim.x < n) sum += in[i + blockDim.x];
  s[t] = sum;
  __syncthreads();
  for (unsigned k = blockDim.x / 2; k > 32; k >>= 1) {
    if (t < k) s[t] = sum = sum + s[t + k];
    __syncthreads();
  }
  if (t < 32) {
    if (blockDim.x >= 64) sum += s[t + 32];
    for (int o = 16; o > 0; o /= 2) sum += __shfl_down_sync(0xffffffff, sum, o);
  }
  if (t == 0) out[blockIdx.x] = sum;
}
extern "C" __global__ void softmax_rows(const float* in, float* out, int cols) {
  __shared__ float part[32];
  const float* row = in + (size_t)blockIdx.x * cols;
  float m = -INFINITY;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) m = fmaxf(m, row[c]);
  for (int o = 16; o > 0; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  part[threadIdx.x / 32] = m;
  __syncthreads();
  m = part[0];
  for (int w = 1; w < blockDim.x / 32; ++w) m = fmaxf(m, part[w]);
  float sum = 0;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += expf(row[c] - m);
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  __syncthreads();
  part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) sum += part[w];
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    out[(size_t)blockIdx.x * cols + c] = expf(row[c] - m) / sum;
}
extern "C" __global__ void layer_norm(const float* in, float* out, int n, float eps) {
  __shared__ float2 part[32];
  __shared__ float stats[2];
  float a = 0, b = 0;
  for (int c = threadIdx.x; c < n; c += blockDim.x) { float v = in[blockIdx.x * n + c]; a += v; b += v * v; }
  for (int o = 16; o; o >>= 1) { a += __shfl_xor_sync(~0u, a, o); b += __shfl_xor_sync(~0u, b, o); }
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = make_float2(a, b);
  __syncthreads();
  if (threadIdx.x < 32) {
    float2 p = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : make_float2(0, 0);
    for (int o = 16; o; o >>= 1) { p.x += __shfl_xor_sync(~0u, p.x, o); p.y += __shfl_xor_sync(~0u, p.y, o); }
    stats[0] = p.x / n; stats[1] = rsqrtf(p.y / n - p.x / n * (p.x / n) + eps);
  }
  __syncthreads();
  for (int c = threadIdx.x; c < n; c += blockDim.x) out[blockIdx.x * n + c] = (in[blockIdx.x * n + c] - stats[0]) * stats[1];
}
extern "C" __global__ void bitonic_sort(unsigned* keys, unsigned length) {
  __shared__ unsigned s[1024];
  keys += blockIdx.x * 1024;
  s[threadIdx.x] = keys[threadIdx.x];
  s[threadIdx.x + 512] = keys[threadIdx.x + 512];
  for (unsigned size = 2; size <= length; size <<= 1)
    for (unsigned stride = size / 2; stride > 0; stride >>= 1) {
      __syncthreads();
      unsigned pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
      bool up = (threadIdx.x & (size / 2)) == 0;
      unsigned a = s[pos], b = s[pos + stride];
      if ((a > b) == up) { s[pos] = b; s[pos + stride] = a; }
    }
  __syncthreads();
  keys[threadIdx.x] = s[threadIdx.x];
  keys[threadIdx.x + 512] = s[threadIdx.x + 512];
}
extern "C" __global__ void transpose_tile(const float* in, float* out, int w, int h) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < w && y + j < h) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < h && y + j < w) out[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void early_return_sum(const float* in, float* out, int n) {
  __shared__ float s[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  s[threadIdx.x] = in[i];
  __syncthreads();
  out[i] = s[0] + s[threadIdx.x];
}
extern "C" __global__ void one_thread(const int* in, int* out, int n) {
  __shared__ int last;
  last = 0;
  for (int i = 0; i < n; ++i) { last = last * 31 + in[i]; out[i] = last; }
}
extern "C" __global__ void scan_block(const int* in, int* out) {
  __shared__ int s[2][512];
  int t = threadIdx.x, p = 0;
  s[0][t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (int o = 1; o < blockDim.x; o *= 2) {
    p = 1 - p;
    s[p][t] = t >= o ? s[1 - p][t] + s[1 - p][t - o] : s[1 - p][t];
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + t] = s[p][t];
}
