// tests/corpus/cuda/memory_ops.cu - cache operators, vector access, textures and surfaces
// Exercises: ld/st .ca/.cg/.cs/.lu/.cv/.wb/.wt/.nc, eviction priorities, prefetch, isspacep,
// vectors of every width, volatile, tex/tld4/suld/sust/txq (kept as unknown instructions), discard,
// unaligned structures.

extern "C" __global__ void cache_operators(float4* out, const float4* in, int* iout,
                                           const int* iin) {
  const int i = threadIdx.x;
  float4 v = __ldg(in + i);
  v.x += __ldcg(in + i + 1).y + __ldca(in + i + 2).z + __ldcs(in + i + 3).w + __ldlu(in + i + 4).x;
  v.y += __ldcv(in + i + 5).x;
  __stwb(out + i, v);
  __stcg(out + i + 1, v);
  __stcs(out + i + 2, v);
  __stwt(out + i + 3, v);
  iout[i] = __ldg(iin + i) + __ldcs(iin + i + 1);
  __stwt(iout + i + 1, 4);
  int a;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.s32 %0, [%1];" : "=r"(a) : "l"(iin));
  asm volatile("prefetch.global.L2 [%0+64];" ::"l"(iin));
  asm volatile("prefetchu.L1 [%0];" ::"l"(iin));
  asm volatile("ld.global.L1::evict_last.s32 %0, [%1+-8];" : "=r"(iout[4]) : "l"(iin));
#if __CUDA_ARCH__ >= 800
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("ld.global.L2::cache_hint.b32 %0, [%1], %2;"
               : "=r"(iout[5])
               : "l"(iin), "l"(policy));
  asm volatile("discard.global.L2 [%0], 128;" ::"l"(iout));
  asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(iout));
#endif
  iout[2] = a;
}

template <typename T>
__device__ void copy(T* out, const T* in) {
  out[threadIdx.x] = in[threadIdx.x];
}

struct Odd {
  char c;
  short s;
  int i[3];
};
struct __align__(4) Byte4 {
  unsigned char x, y, z, w;
};

extern "C" __global__ void widths(void* out, const void* in) {
  copy(static_cast<char*>(out), static_cast<const char*>(in));
  copy(static_cast<uchar2*>(out), static_cast<const uchar2*>(in));
  copy(static_cast<uchar4*>(out), static_cast<const uchar4*>(in));
  copy(static_cast<short2*>(out), static_cast<const short2*>(in));
  copy(static_cast<ushort4*>(out), static_cast<const ushort4*>(in));
  copy(static_cast<int2*>(out), static_cast<const int2*>(in));
  copy(static_cast<uint4*>(out), static_cast<const uint4*>(in));
  copy(static_cast<longlong2*>(out), static_cast<const longlong2*>(in));
  copy(static_cast<double2*>(out), static_cast<const double2*>(in));
  copy(static_cast<float3*>(out), static_cast<const float3*>(in));
  copy(static_cast<Odd*>(out), static_cast<const Odd*>(in));
  copy(static_cast<Byte4*>(out), static_cast<const Byte4*>(in));
}

extern "C" __global__ void volatile_access(volatile int* p, volatile float* f, int n) {
  while (*p < n) {
  }
  f[1] = f[0];
  p[1] = n;
}

extern "C" __global__ void textures(float4* out, cudaTextureObject_t tex,
                                    cudaSurfaceObject_t surf) {
  const float x = static_cast<float>(threadIdx.x);
  float4 v = tex1Dfetch<float4>(tex, threadIdx.x);
  const float4 w = tex2D<float4>(tex, x, 0.5f);
  const float4 z = tex3D<float4>(tex, x, 0.25f, 0.75f);
  const float4 l = tex2DLayered<float4>(tex, x, 0.5f, 3);
  const float4 g = tex2Dgather<float4>(tex, x, 0.5f, 1);
  const float4 m = tex2DLod<float4>(tex, x, 0.5f, 2.0f);
  v.x += w.x + z.y + l.z + g.w + m.x;
  float4 s;
  surf2Dread(&s, surf, threadIdx.x * 16, 1);
  v.y += s.y;
  surf2Dwrite(v, surf, threadIdx.x * 16, 2, cudaBoundaryModeClamp);
  surf1Dwrite(static_cast<unsigned char>(3), surf, threadIdx.x);
  out[threadIdx.x] = v;
  int width;
  asm("txq.width.b32 %0, [%1];" : "=r"(width) : "l"(tex));
  out[width].x = 0;
}
