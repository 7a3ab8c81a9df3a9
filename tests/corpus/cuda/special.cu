// tests/corpus/cuda/special.cu - special registers, launch attributes, timers and scoped inline asm
// Exercises: %tid .. %clusterid, %clock64, %globaltimer, %lanemask_*, %smid,
// .maxntid/.minnctapersm/.maxnreg, .reqnctapercluster, nanosleep, multi-line scoped asm with labels
// and comments, griddepcontrol (sm_90).

extern "C" __global__ void __launch_bounds__(256, 2) bounded(int* out) {
  out[threadIdx.x] = blockIdx.z;
}
extern "C" __global__ void __launch_bounds__(128) bounded_once(int* out) {
  out[threadIdx.y] = gridDim.y;
}
extern "C" __global__ void __maxnreg__(40) few_registers(int* out) {
  out[threadIdx.z] = blockDim.z;
}
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(int* out) {
  unsigned rank, count;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(count));
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  __shared__ int slot;
  slot = threadIdx.x;
  unsigned remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(remote)
               : "r"(unsigned(__cvta_generic_to_shared(&slot))), "r"(rank ^ 1u));
  int v;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(remote));
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
  out[threadIdx.x] = v + rank + count;
}
extern "C" __global__ void __launch_bounds__(128, 1, 4) cluster_bounds(int* out) { out[0] = 1; }
#endif

extern "C" __global__ void registers(unsigned long long* out) {
  unsigned r[12];
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(r[0]));
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(r[1]));
  asm volatile("mov.u32 %0, %%nwarpid;" : "=r"(r[2]));
  asm volatile("mov.u32 %0, %%smid;" : "=r"(r[3]));
  asm volatile("mov.u32 %0, %%nsmid;" : "=r"(r[4]));
  asm volatile("mov.u32 %0, %%lanemask_eq;" : "=r"(r[5]));
  asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(r[6]));
  asm volatile("mov.u32 %0, %%lanemask_ge;" : "=r"(r[7]));
  asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(r[8]));
  asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(r[9]));
  asm volatile("mov.u32 %0, %%envreg3;" : "=r"(r[10]));
  asm volatile("mov.u32 %0, WARP_SZ;" : "=r"(r[11]));
  unsigned long long t, g;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  asm volatile("mov.u64 %0, %%gridid;" : "=l"(g));
  unsigned long long sum = t + g + clock() + clock64();
  for (unsigned v : r) sum += v;
  __nanosleep(100);
  out[threadIdx.x] = sum;
}

extern "C" __global__ void scoped_asm(float* out, const float* in, int n) {
  float r = in[threadIdx.x];
  for (int i = 0; i < n; ++i) {
    asm volatile(
        "{\n"
        "    .reg .pred p, q;            // predicates of this block\n"
        "    .reg .f32 t, %%u<4>;\n"
        "    setp.gt.f32 p, %0, 0f00000000;\n"
        "    setp.lt.and.f32 q|p, %0, 2.5, p;\n"
        "    @p  mul.f32 t, %0, 0.5;\n"
        "    @!p neg.f32 t, %0;\n"
        "    mov.f32 %%u3, t;\n"
        "    @q bra.uni DONE;\n"
        "    add.f32 %%u3, %%u3, 1e-3;  /* not taken often */\n"
        "DONE: {\n"
        "        .reg .f32 t;\n"
        "        add.f32 t, %%u3, %%u3;\n"
        "        mov.f32 %0, t;\n"
        "    }\n"
        "}"
        : "+f"(r));
  }
  out[threadIdx.x] = r;
  asm volatile("// a comment alone");
  asm volatile("");
  asm volatile(".pragma \"nounroll\";");
}
