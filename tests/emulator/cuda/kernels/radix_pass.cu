// tests/emulator/cuda/kernels/radix_pass.cu - least-significant-digit radix sort, 4 bits a pass
extern "C" __global__ void radix_count(const unsigned* keys, int n, int shift, unsigned* counts) {
  __shared__ unsigned bins[16];
  if (threadIdx.x < 16) bins[threadIdx.x] = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[keys[i] >> shift & 15], 1u);
  __syncthreads();
  if (threadIdx.x < 16) counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

// Exclusive scan of all counts by one warp.
extern "C" __global__ void radix_offsets(unsigned* counts, int n) {
  unsigned before = 0;
  for (int start = 0; start < n; start += 32) {
    const int i = start + threadIdx.x;
    const unsigned own = i < n ? counts[i] : 0;
    unsigned sum = own;
    for (int step = 1; step < 32; step *= 2) {
      const unsigned below = __shfl_up_sync(0xffffffffu, sum, step);
      if (threadIdx.x >= step) sum += below;
    }
    if (i < n) counts[i] = before + sum - own;
    before += __shfl_sync(0xffffffffu, sum, 31);
  }
}

// Stable: ranks among equal digits from ballots, warps in order.
extern "C" __global__ void radix_scatter(const unsigned* keys, unsigned* sorted, int n, int shift,
                                         const unsigned* offsets) {
  __shared__ unsigned of_warp[4][16];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x < 64) of_warp[threadIdx.x / 16][threadIdx.x % 16] = 0;
  __syncthreads();
  const bool valid = i < n;
  const unsigned key = valid ? keys[i] : 0;
  const unsigned digit = key >> shift & 15;
  unsigned same = __ballot_sync(0xffffffffu, valid);
  for (int bit = 0; bit < 4; ++bit) {
    const unsigned set = __ballot_sync(0xffffffffu, digit >> bit & 1);
    same &= (digit >> bit & 1) != 0 ? set : ~set;
  }
  const unsigned rank = __popc(same & ((1u << lane) - 1));
  if (valid && rank == 0) of_warp[warp][digit] = __popc(same);
  __syncthreads();
  if (!valid) return;
  unsigned at = offsets[digit * gridDim.x + blockIdx.x] + rank;
  for (unsigned w = 0; w < warp; ++w) at += of_warp[w][digit];
  sorted[at] = key;
}
