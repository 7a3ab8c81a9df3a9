// tests/kernels/cuda_loops/ring.cuh - mbarriers, tensor copies and wgmma for the loops of sm_90a
// Included as text in front of a source.

struct __align__(64) Map {
  unsigned long long words[16];
};

constexpr int kStages = 3, kTerms = 64, kRows = 128, kColumns = 64;
constexpr unsigned kBytesA = kRows * kTerms * 2, kBytesB = kColumns * kTerms * 2;

__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
__device__ void init(unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ void expect(unsigned bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
               : "memory");
}
__device__ void arrive(unsigned bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
// At the same barrier of a block of the cluster.
__device__ void arrive_at(unsigned bar, unsigned rank) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}\n" ::"r"(bar),
      "r"(rank)
      : "memory");
}
__device__ void wait(unsigned bar, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}\n" ::"r"(bar),
      "r"(parity)
      : "memory");
}
__device__ void copy_box(unsigned to, const Map* map, int term, int row, unsigned bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(map), "r"(term), "r"(row), "r"(bar)
      : "memory");
}
__device__ void copy_box_to_all(unsigned to, const Map* map, int term, int row, unsigned bar,
                                unsigned short blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(map), "r"(term), "r"(row), "r"(bar), "h"(blocks)
      : "memory");
}

// Rows of 128 bytes, swizzled by 128: 8 rows are 1024 bytes apart.
__device__ unsigned long long descriptor(unsigned at) {
  return (at & 0x3ffff) >> 4 | 64ull << 32 | 1ull << 62;
}

#define SUMS_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS_16(i) SUMS_4(i), SUMS_4(i + 4), SUMS_4(i + 8), SUMS_4(i + 12)
#define SUM_LIST                                                                                \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"

// d, of 64 x 64, += a b of 16 terms, both in shared memory.
__device__ void multiply(float (&d)[32], unsigned long long a, unsigned long long b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " SUM_LIST
               ", %32, %33, 1, 1, 1, 0, 0;"
               : SUMS_16(0), SUMS_16(16)
               : "l"(a), "l"(b));
}
// The same with a in registers.
__device__ void multiply(float (&d)[32], const unsigned (&a)[4], unsigned long long b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " SUM_LIST
               ", {%32, %33, %34, %35}, %36, 1, 1, 1, 0;"
               : SUMS_16(0), SUMS_16(16)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__device__ void fence_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
__device__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// The warpgroup's 64 x 64 sums from (row, column) on.
__device__ void store(float* c, const float (&d)[32], int row, int column, int m, int n) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  for (int i = 0; i < 32; ++i) {
    const int r = row + warp * 16 + lane / 4 + i / 2 % 2 * 8;
    const int j = column + i / 4 * 8 + lane % 4 * 2 + i % 2;
    if (r < m && j < n) c[static_cast<long>(r) * n + j] = d[i];
  }
}
