// tests/emulator/cuda/kernels/bulk_copies.cu - cp.async.bulk by cuda::barrier and by PTX
#include <cuda/barrier>
#include <cuda/ptx>

using Barrier = cuda::barrier<cuda::thread_scope_block>;

// A tile is copied in, changed and copied out.
extern "C" __global__ void bulk_scale(const float* in, float* out, float factor) {
  __shared__ alignas(128) float tile[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier bar;
  if (threadIdx.x == 0) {
    init(&bar, blockDim.x);
    cuda::device::experimental::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  Barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::experimental::cp_async_bulk_global_to_shared(tile, in + blockIdx.x * 256,
                                                               sizeof tile, bar);
    token = cuda::device::barrier_arrive_tx(bar, 1, sizeof tile);
  } else {
    token = bar.arrive();
  }
  bar.wait(std::move(token));
  for (int i = threadIdx.x; i < 256; i += blockDim.x) tile[i] *= factor;
  cuda::device::experimental::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::device::experimental::cp_async_bulk_shared_to_global(out + blockIdx.x * 256, tile,
                                                               sizeof tile);
    cuda::device::experimental::cp_async_bulk_commit_group();
    cuda::device::experimental::cp_async_bulk_wait_group_read<0>();
  }
}

namespace {

__device__ unsigned address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}
__device__ void expect(unsigned bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
               : "memory");
}
__device__ void load(unsigned to, const void* from, unsigned bytes, unsigned bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(bar)
      : "memory");
}
__device__ void wait(unsigned bar, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(bar),
      "r"(parity)
      : "memory");
}

}  // namespace

// A producer and consumers: a ring of stages with full and empty barriers.
extern "C" __global__ void bulk_pipeline(const int* in, int* out, int chunks) {
  constexpr int kStages = 2, kChunk = 128;
  __shared__ alignas(128) int ring[kStages][kChunk];
  __shared__ alignas(8) unsigned long long full[kStages], empty[kStages];
  const int consumers = blockDim.x - 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&full[s])));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(&empty[s])),
                   "r"(consumers));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0) {
      for (int c = 0; c < chunks; ++c) {
        const int s = c % kStages, turn = c / kStages;
        if (turn > 0) wait(address(&empty[s]), (turn - 1) & 1);
        expect(address(&full[s]), kChunk * 4);
        load(address(ring[s]), in + c * kChunk, kChunk * 4, address(&full[s]));
      }
    }
    return;
  }
  const int thread = threadIdx.x - 32;
  int sum = 0;
  for (int c = 0; c < chunks; ++c) {
    const int s = c % kStages;
    wait(address(&full[s]), c / kStages & 1);
    for (int i = thread; i < kChunk; i += consumers) sum += ring[s][i];
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(&empty[s])) : "memory");
  }
  out[thread] = sum;
}
