// tests/corpus/cuda/atomics.cu - atomics of every kind, scope and memory order
// Exercises: atom/red .global/.shared/generic with add/min/max/and/or/xor/inc/dec/exch/cas,
// .cta/.gpu/.sys, .acquire/.release/.acq_rel/.relaxed, fence, membar, ld.acquire/st.release,
// 128-bit atom (sm_90).

extern "C" __global__ void all_kinds(int* i, unsigned* u, unsigned long long* l, long long* sl,
                                     float* f, double* d) {
  const int t = threadIdx.x;
  int r = atomicAdd(i, t);
  r += atomicSub(i + 1, t);
  r += atomicExch(i + 2, t);
  r += atomicMin(i + 3, t);
  r += atomicMax(i + 4, t);
  r += atomicAnd(i + 5, t);
  r += atomicOr(i + 6, t);
  r += atomicXor(i + 7, t);
  r += atomicCAS(i + 8, t, 5);
  unsigned v =
      atomicInc(u, 100u) + atomicDec(u + 1, 7u) + atomicMin(u + 2, 3u) + atomicMax(u + 3, 4u);
  unsigned long long w =
      atomicAdd(l, 1ull) + atomicCAS(l + 1, 2ull, 3ull) + atomicExch(l + 2, 9ull);
  w += atomicMin(l + 3, 4ull) + atomicAnd(l + 4, 5ull) + atomicOr(l + 5, 6ull) +
       atomicXor(l + 6, 7ull);
  const long long x = atomicMax(sl, 11ll) + atomicMin(sl + 1, -3ll);
  const float g = atomicAdd(f, 1.5f) + atomicExch(f + 1, 2.0f);
  const double h = atomicAdd(d, 2.5);
  i[t + 16] = r + static_cast<int>(v + w + x) + static_cast<int>(g + h);
}

extern "C" __global__ void reductions(int* i, unsigned* u, unsigned long long* l, float* f,
                                      double* d) {
  __shared__ int local[4];
  __shared__ float flocal;
  __shared__ unsigned long long wide;
  if (threadIdx.x < 4) local[threadIdx.x] = 0;
  if (threadIdx.x == 0) {
    flocal = 0;
    wide = 0;
  }
  __syncthreads();
  atomicAdd(&local[threadIdx.x & 3], i[threadIdx.x]);
  atomicMax(&local[3], 17);
  atomicAdd(&flocal, 0.5f);
  atomicCAS(&local[1], 3, 4);
  atomicAdd(&wide, 3ull);
  __syncthreads();
  atomicAdd(i, local[0]);
  atomicAdd(f, flocal);
  atomicAdd(d, 1.0);
  atomicInc(u, 8u);
  atomicXor(l, wide);
  atomicAdd_block(i + 1, 1);
  atomicAdd_system(i + 2, 1);
  atomicExch_block(u + 1, 4u);
  atomicCAS_system(u + 2, 4u, 5u);
}

extern "C" __global__ void orders(int* flag, long long* wide, int* out) {
  const int a = __nv_atomic_load_n(flag, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
  __nv_atomic_store_n(flag + 1, a, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_SYSTEM);
  const int b = __nv_atomic_fetch_add(flag + 2, 3, __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_BLOCK);
  const int c = __nv_atomic_exchange_n(flag + 3, b, __NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_DEVICE);
  long long expected = 7;
  const bool won = __nv_atomic_compare_exchange_n(wide, &expected, 9ll, false, __NV_ATOMIC_RELAXED,
                                                  __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  __threadfence();
  __threadfence_block();
  __threadfence_system();
  __nv_atomic_thread_fence(__NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_DEVICE);
  out[threadIdx.x] = a + b + c + won + static_cast<int>(expected);
}

extern "C" __global__ void inline_orders(int* p, int* out) {
  int a, b;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(a) : "l"(__cvta_generic_to_global(p)));
  asm volatile("ld.relaxed.sys.b32 %0, [%1+4];" : "=r"(b) : "l"(p));
  asm volatile("st.release.cta.b32 [%0+8], %1;" ::"l"(p), "r"(a) : "memory");
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
  asm volatile("fence.sc.cta;" ::: "memory");
  asm volatile("membar.gl;" ::: "memory");
  asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" ::"l"(p), "r"(b) : "memory");
  asm volatile("atom.acq_rel.sys.global.cas.b32 %0, [%1], %2, %3;"
               : "=r"(a)
               : "l"(p), "r"(a), "r"(b));
  asm volatile("atom.global.cas.b16 %0, [%1], %2, %3;"
               : "=h"(*reinterpret_cast<short*>(out))
               : "l"(p), "h"(short(1)), "h"(short(2)));
  asm volatile("atom.global.min.s32 _, [%0], 5;" ::"l"(p) : "memory");
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{ .reg .b128 a, b, c;\n\t mov.b128 a, {%2, %2};\n\t mov.b128 b, {%2, %1};\n\t"
      "atom.global.b128.cas c, [%0], a, b; }" ::"l"(p),
      "l"(1ll), "l"(2ll)
      : "memory");
  asm volatile("red.global.add.noftz.v2.f16x2 [%0], {%1, %2};" ::"l"(p), "r"(a), "r"(b) : "memory");
  asm volatile("red.global.v4.f32.add [%0], {%1, %1, %1, %1};" ::"l"(p), "f"(1.0f) : "memory");
#endif
  out[threadIdx.x] = a;
}
