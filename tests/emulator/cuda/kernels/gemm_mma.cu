// tests/emulator/cuda/kernels/gemm_mma.cu - ldmatrix and mma.sync m16n8k16 by inline assembly
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// C[16 x 16] = A[16 x k] B[k x 16], B row-major: one warp, B transposed by ldmatrix.
extern "C" __global__ void gemm_mma(const __half* a, const __half* b, float* c, int k) {
  __shared__ __align__(16) __half as[16][24], bs[16][24];
  const int lane = threadIdx.x;
  float sum[2][4] = {};
  for (int start = 0; start < k; start += 16) {
    const int row = lane / 2, half = lane % 2 * 8;
    *reinterpret_cast<uint4*>(&as[row][half]) =
        *reinterpret_cast<const uint4*>(a + row * k + start + half);
    *reinterpret_cast<uint4*>(&bs[row][half]) =
        *reinterpret_cast<const uint4*>(b + (start + row) * 16 + half);
    __syncwarp();
    unsigned fa[4], fb[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                 : "r"(shared_address(&as[lane % 16][lane / 16 * 8]))
                 : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(fb[0]), "=r"(fb[1]), "=r"(fb[2]), "=r"(fb[3])
                 : "r"(shared_address(&bs[lane % 16][lane / 16 * 8]))
                 : "memory");
    for (int j = 0; j < 2; ++j)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
          "{%8,%9}, {%0,%1,%2,%3};"
          : "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3])
          : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[2 * j]), "r"(fb[2 * j + 1]));
    __syncwarp();
  }
  for (int j = 0; j < 2; ++j)
    for (int r = 0; r < 4; ++r)
      c[(lane / 4 + r / 2 * 8) * 16 + j * 8 + lane % 4 * 2 + r % 2] = sum[j][r];
}

// bf16 operands straight from global memory; B is given as columns.
extern "C" __global__ void mma_bfloat(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
  const int lane = threadIdx.x, group = lane / 4, pair = lane % 4 * 2;
  auto word = [](const __nv_bfloat16* p) { return *reinterpret_cast<const unsigned*>(p); };
  const unsigned a0 = word(a + group * 16 + pair), a1 = word(a + (group + 8) * 16 + pair);
  const unsigned a2 = word(a + group * 16 + pair + 8), a3 = word(a + (group + 8) * 16 + pair + 8);
  const unsigned b0 = word(b + group * 16 + pair), b1 = word(b + group * 16 + pair + 8);
  float d0 = 1, d1 = 1, d2 = 1, d3 = 1;
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  c[group * 8 + pair] = d0;
  c[group * 8 + pair + 1] = d1;
  c[(group + 8) * 8 + pair] = d2;
  c[(group + 8) * 8 + pair + 1] = d3;
}

// m16n8k32, signed bytes.
extern "C" __global__ void mma_bytes(const int* a, const int* b, int* c) {
  const int lane = threadIdx.x, group = lane / 4, quad = lane % 4;
  const int a0 = a[group * 8 + quad], a1 = a[(group + 8) * 8 + quad];
  const int a2 = a[group * 8 + quad + 4], a3 = a[(group + 8) * 8 + quad + 4];
  const int b0 = b[group * 8 + quad], b1 = b[group * 8 + quad + 4];
  int d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(d0), "+r"(d1), "+r"(d2), "+r"(d3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  c[group * 8 + quad * 2] = d0;
  c[group * 8 + quad * 2 + 1] = d1;
  c[(group + 8) * 8 + quad * 2] = d2;
  c[(group + 8) * 8 + quad * 2 + 1] = d3;
}
