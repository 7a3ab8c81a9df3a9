// tests/emulator/cuda/kernels/mbarrier.cu - cuda::barrier: producers, consumers, phases
#include <cuda/barrier>

using Barrier = cuda::barrier<cuda::thread_scope_block>;

#pragma nv_diag_suppress static_var_with_dynamic_init

// Everybody arrives, works on something else, waits: neighbours' values of the round before.
extern "C" __global__ void split_barrier(int* data, int rounds) {
  __shared__ int line[2][128];
  __shared__ Barrier barrier;
  const int t = threadIdx.x;
  if (t == 0) init(&barrier, blockDim.x);
  line[0][t] = data[t];
  __syncthreads();
  for (int r = 0; r < rounds; ++r) {
    const int mine = line[r % 2][t] * 3 + line[r % 2][(t + 1) % blockDim.x];
    line[(r + 1) % 2][t] = mine;
    Barrier::arrival_token token = barrier.arrive();
    int busy = 0;
    for (int i = 0; i < t % 7; ++i) busy += i;
    barrier.wait(std::move(token));
    if (busy < 0) line[0][t] = 0;
  }
  data[t] = line[rounds % 2][t];
}

// Warp 0 fills a ring of two buffers, the other warps sum up what is in them.
extern "C" __global__ void ring(const int* in, int* sums, int batches) {
  __shared__ int buffer[2][32];
  __shared__ Barrier full[2], empty[2];
  const int t = threadIdx.x, consumers = blockDim.x - 32;
  if (t == 0)
    for (int i = 0; i < 2; ++i) {
      init(&full[i], blockDim.x);
      init(&empty[i], blockDim.x);
    }
  __syncthreads();
  if (t < 32) {
    for (int b = 0; b < batches; ++b) {
      empty[b % 2].arrive_and_wait();
      buffer[b % 2][t] = in[b * 32 + t];
      (void)full[b % 2].arrive();
    }
  } else {
    (void)empty[0].arrive();
    (void)empty[1].arrive();
    int sum = 0;
    for (int b = 0; b < batches; ++b) {
      full[b % 2].arrive_and_wait();
      for (int i = t - 32; i < 32; i += consumers) sum += buffer[b % 2][i] * (b + 1);
      (void)empty[b % 2].arrive();
    }
    atomicAdd(&sums[t - 32], sum);
  }
}
