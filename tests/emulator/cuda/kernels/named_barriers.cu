// tests/emulator/cuda/kernels/named_barriers.cu - producer and consumer warps on barriers 1 to 4
extern "C" __global__ void named_barriers(const int* in, int* out, int batches) {
  __shared__ int buffer[2][32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int b = 0; b < batches; ++b) {
      const int side = b % 2;
      if (b >= 2) asm volatile("bar.sync %0, 64;" ::"r"(3 + side) : "memory");
      buffer[side][lane] = in[b * 32 + lane] * 2;
      asm volatile("bar.arrive %0, 64;" ::"r"(1 + side) : "memory");
    }
  } else {
    int sum = 0;
    for (int b = 0; b < batches; ++b) {
      const int side = b % 2;
      asm volatile("bar.sync %0, 64;" ::"r"(1 + side) : "memory");
      sum = sum * 3 + buffer[side][31 - lane];
      if (b + 2 < batches) asm volatile("bar.arrive %0, 64;" ::"r"(3 + side) : "memory");
    }
    out[lane] = sum;
  }
}

// Barriers that vote.
extern "C" __global__ void voting_barriers(const int* in, int* out) {
  const int t = threadIdx.x;
  out[t * 3] = __syncthreads_count(in[t] > 0);
  out[t * 3 + 1] = __syncthreads_and(in[t] > -100);
  out[t * 3 + 2] = __syncthreads_or(in[t] == 77);
}
