// tests/kernels/cuda_loops/registers.cu - wgmma with A in registers
// As warp_specialized.cu, but each warpgroup loads its rows of A by ldmatrix, as a loop does that
// converts A on the way. A is swizzled as the tensor copy leaves it. After ring.cuh.

__device__ void load_rows(unsigned (&r)[4], unsigned tile, int term) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const unsigned row = warp * 16 + lane % 16, piece = term / 8 + lane / 16;
  const unsigned at = tile + row * 128 + (piece ^ row % 8) * 16;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}

extern "C" __global__ void __launch_bounds__(384)
    registers(const __grid_constant__ Map map_a, const __grid_constant__ Map map_b, float* c, int m,
              int n, int k) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ unsigned long long full[kStages], empty[kStages];
  const unsigned group = threadIdx.x / 128;
  const int row0 = blockIdx.y * kRows, column0 = blockIdx.x * kColumns;
  const int steps = (k + kTerms - 1) / kTerms;
  const unsigned tiles = shared_address(memory);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      init(shared_address(&full[i]), 1);
      init(shared_address(&empty[i]), 8);  // warps: each has read A by itself
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (group == 0) {
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
    return;
  }
  float d[32] = {};
  const int own = group - 1;
  for (int step = 0; step < steps; ++step) {
    const int slot = step % kStages;
    wait(shared_address(&full[slot]), step / kStages % 2);
    const unsigned at = tiles + slot * (kBytesA + kBytesB);
    unsigned a[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) load_rows(a[i], at + own * 64 * 128, 16 * i);
    const unsigned long long b = descriptor(at + kBytesA);
    fence_products();
#pragma unroll
    for (int i = 0; i < 4; ++i) multiply(d, a[i], b + 2 * i);
    commit_products();
    wait_products<0>();
    __syncwarp();  // all lanes have read A
    if (threadIdx.x % 32 == 0) arrive(shared_address(&empty[slot]));
  }
  store(c, d, row0 + own * 64, column0, m, n);
}
