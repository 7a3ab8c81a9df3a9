// tests/corpus/cuda/tensor_core.cu - wmma, mma.sync, ldmatrix, cp.async
// Exercises: wmma.load/mma/store with .shared/.global and strides, braced register lists, mma.sync
// of many shapes and types, ldmatrix .x1/.x2/.x4 .trans, cp.async groups with zfill, wait_group,
// stmatrix (sm_90).
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void wmma_half(float* c, const half* a, const half* b, int k) {
  __shared__ half staging[16 * 16];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  for (int i = 0; i < k; i += 16) {
    staging[threadIdx.x] = b[i + threadIdx.x];
    __syncwarp();
    wmma::load_matrix_sync(fa, a + i, k);
    wmma::load_matrix_sync(fb, staging, 16);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

extern "C" __global__ void wmma_integer(int* c, const signed char* a, const signed char* b) {
  wmma::fragment<wmma::matrix_a, 32, 8, 16, signed char, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, signed char, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 32, 8, 16, int> fc;
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::fill_fragment(fc, 3);
  wmma::mma_sync(fc, fa, fb, fc, true);
  wmma::store_matrix_sync(c, fc, 8, wmma::mem_col_major);
}

extern "C" __global__ void ldmatrix_shapes(unsigned* out) {
  __shared__ __align__(128) unsigned tile[1024];
  tile[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(tile + threadIdx.x * 4));
  unsigned r0, r1, r2, r3;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
               : "r"(at));
  unsigned t0, t1;
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2+512];"
               : "=r"(t0), "=r"(t1)
               : "r"(at));
  unsigned s;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared::cta.b16 {%0}, [%1];" : "=r"(s) : "r"(at));
  int c0 = 0, c1 = 0;
  asm("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
      : "+r"(c0), "+r"(c1)
      : "r"(r0), "r"(s));
  float f0 = 0, f1 = 0, f2 = 0, f3 = 0;
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, "
      "{%4, %5}, "
      "{%6}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(f0), "+f"(f1), "+f"(f2), "+f"(f3)
      : "r"(r0), "r"(r1), "r"(t0));
  out[threadIdx.x] = r0 ^ r1 ^ r2 ^ r3 ^ t0 ^ t1 ^ s ^ c0 ^ c1 ^ __float_as_uint(f0 + f1 + f2 + f3);
}

extern "C" __global__ void ampere_pipeline(float* out, const uint4* in, const double* din, int n) {
#if __CUDA_ARCH__ >= 800
  __shared__ __align__(16) uint4 ring[4][32];
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&ring[0][threadIdx.x]));
  const int bytes = threadIdx.x < n ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(in), "r"(bytes));
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8;" ::"r"(at + 512), "l"(in + 32));
  asm volatile("cp.async.commit_group;\n" ::);
  asm volatile("cp.async.wait_group %0;\n" ::"n"(1));
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  const uint4 a = ring[0][threadIdx.x];
  const uint4 b = ring[1][threadIdx.x];
  float c[4] = {0, 0, 0, 0};
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%10,%11,%12,%13};"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y), "f"(c[0]), "f"(c[1]), "f"(c[2]),
        "f"(c[3]));
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
  int q[4] = {1, 2, 3, 4};
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+r"(q[0]), "+r"(q[1]), "+r"(q[2]), "+r"(q[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
  double d0 = din[0], d1 = din[1];
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+d"(d0), "+d"(d1)
               : "d"(din[2]), "d"(din[3]));
#if __CUDA_ARCH__ >= 890
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
#endif
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(q[0]),
               "r"(q[1]), "r"(q[2]), "r"(q[3])
               : "memory");
#endif
  out[threadIdx.x] = c[0] + c[1] + c[2] + c[3] + q[0] + q[3] + static_cast<float>(d0 + d1);
#else
  out[threadIdx.x] = static_cast<float>(in[threadIdx.x].x + n) + static_cast<float>(din[0]);
#endif
}
