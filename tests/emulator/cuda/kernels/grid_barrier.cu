// tests/emulator/cuda/kernels/grid_barrier.cu - blocks that wait for each other
__device__ void wait_for_all(unsigned* arrived, volatile unsigned* round) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned mine = *round;
    __threadfence();
    if (atomicAdd(arrived, 1u) == gridDim.x - 1) {
      *arrived = 0;
      __threadfence();
      *round = mine + 1;
    } else {
      while (*round == mine) {
      }
    }
    __threadfence();
  }
  __syncthreads();
}

// Each round every cell takes the sum of its neighbours', blocks apart.
extern "C" __global__ void grid_barrier(volatile unsigned* a, volatile unsigned* b, int rounds,
                                        unsigned* arrived, unsigned* round) {
  const unsigned n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  volatile unsigned* from = a;
  volatile unsigned* to = b;
  for (int r = 0; r < rounds; ++r) {
    to[i] = from[(i + n - 1) % n] + from[i] + from[(i + 1) % n];
    wait_for_all(arrived, round);
    volatile unsigned* const kept = from;
    from = to;
    to = kept;
  }
}
