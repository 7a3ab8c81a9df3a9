// tests/emulator/cuda/kernels/copy_pipeline.cu - memcpy_async by groups and by cuda::pipeline
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

extern "C" __global__ void group_copy(const int* in, int* out, int n) {
  extern __shared__ __align__(16) int tile[];
  const auto block = cg::this_thread_block();
  const int start = blockIdx.x * 256, count = min(256, n - start);
  cg::memcpy_async(block, tile, in + start, sizeof(int) * count);
  cg::wait(block);
  for (int i = block.thread_rank(); i < count; i += block.size())
    out[start + i] = tile[count - 1 - i];
}

// Three stages ahead, every thread its own 16 bytes.
extern "C" __global__ void staged_sum(const int4* in, int4* out, int steps) {
  __shared__ int4 stage[3][64];
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  const int t = threadIdx.x;
  int4 sum = make_int4(0, 0, 0, 0);
  for (int ahead = 0, s = 0; s < steps; ++s) {
    for (; ahead < steps && ahead < s + 3; ++ahead) {
      pipe.producer_acquire();
      cuda::memcpy_async(&stage[ahead % 3][t], &in[ahead * 64 + t], cuda::aligned_size_t<16>(16),
                         pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    const int4 v = stage[s % 3][t];
    sum = make_int4(sum.x + v.x, sum.y ^ v.y, max(sum.z, v.z), sum.w * 3 + v.w);
    pipe.consumer_release();
  }
  out[t] = sum;
}
