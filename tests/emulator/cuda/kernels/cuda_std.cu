// tests/emulator/cuda/kernels/cuda_std.cu - atomics, barriers, pipelines, semaphores of libcu++
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/complex>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
extern "C" __global__ void std_atomic(unsigned* counter, unsigned* most, float* sum, const int* in,
                                      int n) {
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> c(*counter), m(*most);
  cuda::atomic_ref<float, cuda::thread_scope_device> s(*sum);
  __shared__ cuda::atomic<int, cuda::thread_scope_block> local;
  if (threadIdx.x == 0) local.store(0, cuda::memory_order_relaxed);
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    c.fetch_add(1, cuda::memory_order_relaxed);
    m.fetch_max(unsigned(in[i]));
    s.fetch_add(float(in[i]), cuda::memory_order_acq_rel);
    local.fetch_xor(in[i]);
    unsigned expected = m.load(cuda::memory_order_acquire);
    while (!m.compare_exchange_weak(expected, expected | 1u)) {
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicXor(reinterpret_cast<int*>(most + 1), local.load());
}
extern "C" __global__ void std_barrier(const int* in, int* out, int n) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar[2];
  __shared__ int tile[2][128];
  if (threadIdx.x == 0) {
    init(&bar[0], blockDim.x);
    init(&bar[1], blockDim.x);
  }
  __syncthreads();
  int sum = 0;
  for (int r = 0; r < n; ++r) {
    cuda::memcpy_async(&tile[r & 1][threadIdx.x],
                       in + (r * gridDim.x + blockIdx.x) * 128 + threadIdx.x,
                       cuda::aligned_size_t<4>(4), bar[r & 1]);
    bar[r & 1].arrive_and_wait();
    sum += tile[r & 1][(threadIdx.x + r) % 128];
    bar[(r + 1) & 1].arrive_and_wait();
    bar[(r + 1) & 1].wait(bar[(r + 1) & 1].arrive());
  }
  out[blockIdx.x * 128 + threadIdx.x] = sum;
}
extern "C" __global__ void std_pipeline(const int* in, int* out, int batches) {
  constexpr int stages = 2;
  __shared__ int tile[stages][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int sum = 0, fetched = 0;
  for (int b = 0; b < batches; ++b) {
    for (; fetched < batches && fetched < b + stages; ++fetched) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, tile[fetched % stages],
                         in + (fetched * gridDim.x + blockIdx.x) * 128,
                         cuda::aligned_size_t<16>(512), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += tile[b % stages][127 - threadIdx.x];
    pipe.consumer_release();
  }
  out[blockIdx.x * 128 + threadIdx.x] = sum;
}
extern "C" __global__ void std_roles(const int* in, int* out, int batches) {
  constexpr int stages = 2;
  __shared__ int tile[stages][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  auto block = cg::this_thread_block();
  const bool producer = threadIdx.x < 64;
  auto pipe = cuda::make_pipeline(
      block, &state, producer ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  if (producer) {
    for (int b = 0; b < batches; ++b) {
      pipe.producer_acquire();
      cuda::memcpy_async(&tile[b % stages][threadIdx.x],
                         in + (b * gridDim.x + blockIdx.x) * 64 + threadIdx.x,
                         cuda::aligned_size_t<4>(4), pipe);
      pipe.producer_commit();
    }
  } else {
    int sum = 0;
    for (int b = 0; b < batches; ++b) {
      pipe.consumer_wait();
      sum += tile[b % stages][127 - threadIdx.x] * (b + 1);
      pipe.consumer_release();
    }
    out[blockIdx.x * 64 + threadIdx.x - 64] = sum;
  }
}
extern "C" __global__ void std_semaphore(int* in_use, int* most, int* done) {
  __shared__ alignas(16) char raws[64];
  auto& s = *reinterpret_cast<cuda::counting_semaphore<cuda::thread_scope_block, 3>*>(raws);
  __shared__ alignas(16) char raw[sizeof(cuda::latch<cuda::thread_scope_block>)];
  auto& l = *reinterpret_cast<cuda::latch<cuda::thread_scope_block>*>(raw);
  if (threadIdx.x == 0) {
    new (&s) cuda::counting_semaphore<cuda::thread_scope_block, 3>(3);
    new (&l) cuda::latch<cuda::thread_scope_block>(blockDim.x);
  }
  __syncthreads();
  s.acquire();
  const int now = atomicAdd(in_use, 1) + 1;
  atomicMax(most, now);
  atomicSub(in_use, 1);
  s.release();
  l.arrive_and_wait();
  atomicAdd(done, 1);
}
extern "C" __global__ void std_types(const float* in, float* out, int n) {
  const int i = threadIdx.x;
  cuda::std::complex<float> z(in[2 * i], in[2 * i + 1]);
  auto w = z * z / (z + cuda::std::complex<float>(1, 0));
  out[2 * i] = w.real();
  out[2 * i + 1] = w.imag();
}
