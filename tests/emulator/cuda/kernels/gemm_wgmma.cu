// tests/emulator/cuda/kernels/gemm_wgmma.cu - tensor copies and wgmma in a ring of stages
#include <cuda_fp16.h>
#include <cstdint>

// A tensor map, as cuTensorMapEncodeTiled makes it.
struct alignas(64) Map {
  unsigned char bytes[128];
};

constexpr int kStages = 2, kTile = 64;

__device__ inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ inline void init(uint64_t* bar, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(arrivals));
}
__device__ inline void wait(uint64_t* bar, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(
          shared_address(bar)),
      "r"(parity)
      : "memory");
}
__device__ inline void arrive(uint64_t* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}
__device__ inline void expect(uint64_t* bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)),
               "r"(bytes)
               : "memory");
}
__device__ inline void copy(void* to, const Map* map, int x, int y, uint64_t* bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], [%4];" ::"r"(shared_address(to)),
      "l"(map), "r"(x), "r"(y), "r"(shared_address(bar))
      : "memory");
}
// Rows of 128 bytes with the 128-byte swizzle.
__device__ inline uint64_t descriptor(const void* p) {
  return ((shared_address(p) & 0x3ffff) >> 4) | (1024ull >> 4) << 32 | 1ull << 62;
}
__device__ inline void product(float (&d)[32], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b));
}

// d[m x n] = a[m x k] b[n x k]: warp 4 copies tiles of 64 x 64, warps 0 to 3 multiply. One thread
// of the warpgroup releases a stage.
extern "C" __global__ void __launch_bounds__(160)
    gemm_wgmma(const __grid_constant__ Map map_a, const __grid_constant__ Map map_b, float* out,
               int n, int k) {
  __shared__ alignas(1024) __half a[kStages][kTile * kTile];
  __shared__ alignas(1024) __half b[kStages][kTile * kTile];
  __shared__ alignas(8) uint64_t full[kStages], empty[kStages];
  const int thread = threadIdx.x;
  if (thread == 0) {
    for (int s = 0; s < kStages; ++s) {
      init(&full[s], 1);
      init(&empty[s], 1);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  const int steps = k / kTile;
  if (thread >= 128) {
    if (thread == 128) {
      for (int step = 0; step < steps; ++step) {
        const int s = step % kStages;
        if (step >= kStages) wait(&empty[s], (step / kStages - 1) & 1);
        expect(&full[s], 2 * kTile * kTile * 2);
        copy(a[s], &map_a, step * kTile, blockIdx.x * kTile, &full[s]);
        copy(b[s], &map_b, step * kTile, blockIdx.y * kTile, &full[s]);
      }
    }
    return;
  }
  float d[32] = {};
  for (int step = 0; step < steps; ++step) {
    const int s = step % kStages;
    wait(&full[s], step / kStages & 1);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int i = 0; i < kTile / 16; ++i) product(d, descriptor(a[s]) + 2 * i, descriptor(b[s]) + 2 * i);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    // The products of the step before have ended.
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    if (thread == 0 && step > 0) arrive(&empty[(step - 1) % kStages]);
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  const int row = blockIdx.x * kTile + thread / 32 * 16 + thread % 32 / 4;
  const int column = blockIdx.y * kTile + thread % 4 * 2;
  for (int i = 0; i < 32; ++i) {
    out[(row + i / 2 % 2 * 8) * n + column + i / 4 * 8 + i % 2] = d[i];
  }
}
