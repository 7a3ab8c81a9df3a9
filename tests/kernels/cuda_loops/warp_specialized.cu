// tests/kernels/cuda_loops/warp_specialized.cu - a producer warp, two warpgroups of wgmma
// C[m x n] = A[m x k] B[n x k]^T, f16 with sums in f32, by blocks of 128 x 64 outputs. One thread
// fills a ring of steps by tensor copies; each of two warpgroups multiplies 64 rows and keeps a
// group of products in flight. After ring.cuh.

extern "C" __global__ void __launch_bounds__(384)
    warp_specialized(const __grid_constant__ Map map_a, const __grid_constant__ Map map_b, float* c,
                     int m, int n, int k) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ unsigned long long full[kStages], empty[kStages];
  const unsigned group = threadIdx.x / 128;
  const int row0 = blockIdx.y * kRows, column0 = blockIdx.x * kColumns;
  const int steps = (k + kTerms - 1) / kTerms;
  const unsigned tiles = shared_address(memory);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      init(shared_address(&full[i]), 1);
      init(shared_address(&empty[i]), 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      for (int step = 0; step < steps; ++step) {
        const int slot = step % kStages;
        wait(shared_address(&empty[slot]), step / kStages % 2 ^ 1);
        const unsigned bar = shared_address(&full[slot]);
        expect(bar, kBytesA + kBytesB);
        const unsigned to = tiles + slot * (kBytesA + kBytesB);
        copy_box(to, &map_a, step * kTerms, row0, bar);
        copy_box(to + kBytesA, &map_b, step * kTerms, column0, bar);
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float d[32] = {};
    const int own = group - 1;
    for (int step = 0; step < steps; ++step) {
      const int slot = step % kStages;
      wait(shared_address(&full[slot]), step / kStages % 2);
      const unsigned at = tiles + slot * (kBytesA + kBytesB);
      const unsigned long long a = descriptor(at + own * 64 * 128);
      const unsigned long long b = descriptor(at + kBytesA);
      fence_products();
#pragma unroll
      for (int i = 0; i < 4; ++i) multiply(d, a + 2 * i, b + 2 * i);
      commit_products();
      wait_products<1>();
      if (step > 0 && threadIdx.x % 128 == 0) {
        arrive(shared_address(&empty[(step - 1) % kStages]));
      }
    }
    wait_products<0>();
    store(c, d, row0 + own * 64, column0, m, n);
  }
}
