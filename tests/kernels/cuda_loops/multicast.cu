// tests/kernels/cuda_loops/multicast.cu - a cluster of two blocks that share columns of B
// As warp_specialized.cu; the blocks of a cluster have adjacent rows and the same columns. Each
// copies its half of the columns to both, and a step is free when both have read it. After
// ring.cuh.

extern "C" __global__ void __cluster_dims__(1, 2, 1) __launch_bounds__(384)
    multicast(const __grid_constant__ Map map_a, const __grid_constant__ Map map_b, float* c, int m,
              int n, int k) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ unsigned long long full[kStages], empty[kStages];
  const unsigned group = threadIdx.x / 128;
  const int row0 = blockIdx.y * kRows, column0 = blockIdx.x * kColumns;
  const int steps = (k + kTerms - 1) / kTerms;
  const unsigned tiles = shared_address(memory);
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      init(shared_address(&full[i]), 1);
      init(shared_address(&empty[i]), 4);  // two warpgroups of two blocks
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
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
        const unsigned half = rank * kColumns / 2;
        copy_box_to_all(to + kBytesA + half * 128, &map_b, step * kTerms, column0 + half, bar, 3);
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
      wait_products<0>();
      if (threadIdx.x % 128 < 2) arrive_at(shared_address(&empty[slot]), threadIdx.x % 128);
    }
    store(c, d, row0 + own * 64, column0, m, n);
  }
  // A block whose memory others copy to stays.
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
