// tests/emulator/cuda/kernels/monte_carlo.cu - pi by xorshift numbers, integers only
extern "C" __global__ void monte_carlo(unsigned long long seed, int draws, unsigned* inside) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long state = seed + 0x9e3779b97f4a7c15ull * (thread + 1);
  unsigned hits = 0;
  for (int i = 0; i < draws; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const unsigned long long x = state & 0xffff, y = state >> 16 & 0xffff;
    hits += x * x + y * y < 0x100000000ull;
  }
  for (int step = 16; step > 0; step /= 2) hits += __shfl_down_sync(0xffffffffu, hits, step);
  if (threadIdx.x % 32 == 0) atomicAdd(inside, hits);
}
