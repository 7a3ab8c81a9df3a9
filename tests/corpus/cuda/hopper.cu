// tests/corpus/cuda/hopper.cu - mbarrier, bulk copies, tensor maps and warpgroup mma
// Exercises: mbarrier.init/arrive/try_wait loops, cp.async.bulk (plain, .tensor, reduce),
// fence.proxy, fence.mbarrier_init, setmaxnreg and wgmma are arch specific and live in
// ../foreign/ptx_sm90a.ptx.

extern "C" __global__ void bulk_copy(float* out, const float* in, const void* map) {
#if __CUDA_ARCH__ >= 900
  __shared__ __align__(128) float tile[256];
  __shared__ __align__(8) unsigned long long barrier;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  const unsigned bar = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(1) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    unsigned long long state;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;"
                 : "=l"(state)
                 : "r"(bar), "r"(1024)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(at),
        "l"(in), "r"(1024), "r"(bar)
        : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];" ::"r"(at),
        "l"(map), "r"(0), "r"(16), "r"(bar)
        : "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
  }
  asm volatile(
      "{\n"
      ".reg .pred P1;\n"
      "LAB_WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
      "@P1 bra.uni DONE;\n"
      "bra.uni LAB_WAIT;\n"
      "DONE:\n"
      "}\n" ::"r"(bar),
      "r"(0)
      : "memory");
  out[threadIdx.x] = tile[threadIdx.x];
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;" ::"l"(out), "r"(at)
               : "memory");
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(out),
      "r"(at), "r"(512)
      : "memory");
  asm volatile("cp.async.bulk.commit_group;");
  asm volatile("cp.async.bulk.wait_group.read 0;");
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
#else
  out[threadIdx.x] = in[threadIdx.x] + (map != nullptr);
#endif
}

extern "C" __global__ void ampere_mbarrier(unsigned long long* out) {
#if __CUDA_ARCH__ >= 800
  __shared__ unsigned long long barrier;
  const unsigned bar = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(bar));
  __syncthreads();
  unsigned long long state;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(bar) : "memory");
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(bar));
  unsigned done = 0;
  while (done == 0)
    asm volatile(
        "{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(bar), "l"(state)
        : "memory");
  unsigned pending;
  asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
  out[threadIdx.x] = state + pending;
#else
  out[threadIdx.x] = 0;
#endif
}
