// tests/emulator/cuda/kernels/sampling.cu - Philox 4x32-10 numbers; sampling from a distribution
struct Philox {
  uint4 counter;
  uint2 key;
};

__device__ uint4 philox(Philox p) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned high0 = __umulhi(0xD2511F53u, p.counter.x), low0 = 0xD2511F53u * p.counter.x;
    const unsigned high1 = __umulhi(0xCD9E8D57u, p.counter.z), low1 = 0xCD9E8D57u * p.counter.z;
    p.counter =
        make_uint4(high1 ^ p.counter.y ^ p.key.x, low1, high0 ^ p.counter.w ^ p.key.y, low0);
    p.key.x += 0x9E3779B9u;
    p.key.y += 0xBB67AE85u;
  }
  return p.counter;
}

extern "C" __global__ void random_bits(uint4* out, int n, unsigned long long seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Philox p;
  p.counter = make_uint4(i, 7, 0, 0);
  p.key = make_uint2(static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32));
  out[i] = philox(p);
}

// Counts (of whole numbers, so exact) as weights; one warp draws one index for each row.
extern "C" __global__ void draw(const unsigned* weights, int n, unsigned long long seed,
                                int* drawn) {
  const unsigned* row = weights + blockIdx.x * n;
  const int lane = threadIdx.x;
  unsigned total = 0;
  for (int i = lane; i < n; i += 32) total += row[i];
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
  Philox p;
  p.counter = make_uint4(blockIdx.x, 0, 0, 1);
  p.key = make_uint2(static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32));
  const unsigned target = __umulhi(philox(p).x, total);
  unsigned before = 0;
  int found = -1;
  for (int start = 0; start < n && found < 0; start += 32) {
    const unsigned own = start + lane < n ? row[start + lane] : 0;
    unsigned sum = own;
    for (int step = 1; step < 32; step *= 2) {
      const unsigned below = __shfl_up_sync(0xffffffffu, sum, step);
      if (lane >= step) sum += below;
    }
    const unsigned past = __ballot_sync(0xffffffffu, before + sum > target);
    if (past != 0) found = start + __ffs(past) - 1;
    before += __shfl_sync(0xffffffffu, sum, 31);
  }
  if (lane == 0) drawn[blockIdx.x] = found;
}
