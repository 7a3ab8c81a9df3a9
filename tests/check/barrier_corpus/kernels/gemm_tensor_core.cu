// tests/check/barrier_corpus/kernels/gemm_tensor_core.cu - GEMM by mma.sync, shared tiles in a K loop
#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(128)
    kernel(const __half* a, const __half* b, float* c, int m, int n, int k) {
  __shared__ __half as[32][16];
  __shared__ __half bs[16][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row0 = blockIdx.y * 32 + warp / 2 * 16, column0 = blockIdx.x * 32 + warp % 2 * 16;
  const int row = blockIdx.y * 32 + threadIdx.x / 4;
#ifdef EARLY_EXIT
  if (row >= m) return;
#endif
  float sums[2][4] = {};
  for (int k0 = 0; k0 < k; k0 += 16) {
    for (int i = 0; i < 4; ++i) {
      const int inner = k0 + threadIdx.x % 4 * 4 + i;
      as[threadIdx.x / 4][threadIdx.x % 4 * 4 + i] =
          row < m && inner < k ? a[row * k + inner] : __float2half(0.f);
      const int at = blockIdx.x * 32 + threadIdx.x / 4, depth = threadIdx.x % 4 * 4 + i;
      bs[depth][threadIdx.x / 4] =
          at < n && k0 + depth < k ? b[(k0 + depth) * n + at] : __float2half(0.f);
    }
    __syncthreads();
    unsigned fa[4], fb[2];
    const int group = lane / 4, pair = lane % 4 * 2, top = warp / 2 * 16;
    for (int i = 0; i < 4; ++i)
      fa[i] = *reinterpret_cast<unsigned*>(&as[top + group + i % 2 * 8][pair + i / 2 * 8]);
    for (int half = 0; half < 2; ++half) {
      const int at = warp % 2 * 16 + half * 8 + group;
      for (int i = 0; i < 2; ++i) {
        const __half2 two = __halves2half2(bs[pair + i * 8][at], bs[pair + i * 8 + 1][at]);
        fb[i] = *reinterpret_cast<const unsigned*>(&two);
      }
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
          "{%8,%9}, {%0,%1,%2,%3};"
          : "+f"(sums[half][0]), "+f"(sums[half][1]), "+f"(sums[half][2]), "+f"(sums[half][3])
          : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    }
    __syncthreads();
  }
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 4; ++i) {
      const int r = row0 + lane / 4 + i / 2 * 8, at = column0 + half * 8 + lane % 4 * 2 + i % 2;
      if (r < m && at < n) c[r * n + at] = sums[half][i];
    }
  }
}
