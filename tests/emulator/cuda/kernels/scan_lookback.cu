// tests/emulator/cuda/kernels/scan_lookback.cu - one-pass scan that looks back
// A low half holds a sum, the high half: 0 nothing yet, 1 the block's own, 2 up to its end.
extern "C" __global__ void scan_lookback(const unsigned* in, unsigned* out, unsigned n,
                                         unsigned* ticket, volatile unsigned long long* state) {
  __shared__ unsigned part[128];
  __shared__ unsigned my_block, before;
  const unsigned t = threadIdx.x;
  if (t == 0) my_block = atomicAdd(ticket, 1u);
  __syncthreads();
  const unsigned i = my_block * blockDim.x + t;
  const unsigned own = i < n ? in[i] : 0;
  part[t] = own;
  __syncthreads();
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    const unsigned below = t >= step ? part[t - step] : 0;
    __syncthreads();
    part[t] += below;
    __syncthreads();
  }
  if (t == 0) {
    const unsigned sum = part[blockDim.x - 1];
    unsigned so_far = 0;
    if (my_block > 0) {
      state[my_block] = 1ull << 32 | sum;
      __threadfence();
      for (int at = static_cast<int>(my_block) - 1; at >= 0;) {
        const unsigned long long seen = state[at];
        if (seen >> 32 == 0) continue;
        so_far += static_cast<unsigned>(seen);
        if (seen >> 32 == 2) break;
        --at;
      }
    }
    __threadfence();
    state[my_block] = 2ull << 32 | (so_far + sum);
    before = so_far;
  }
  __syncthreads();
  if (i < n) out[i] = before + part[t];
}
