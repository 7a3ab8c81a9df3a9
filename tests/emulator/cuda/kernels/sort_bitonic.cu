// tests/emulator/cuda/kernels/sort_bitonic.cu - bitonic network in shared memory, keys with values
extern "C" __global__ void sort_bitonic(unsigned* keys, unsigned* values) {
  __shared__ unsigned key[512], value[512];
  const unsigned t = threadIdx.x, base = blockIdx.x * 512;
  for (unsigned i = t; i < 512; i += 256) {
    key[i] = keys[base + i];
    value[i] = values[base + i];
  }
  for (unsigned size = 2; size <= 512; size *= 2) {
    for (unsigned stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const unsigned low = 2 * t - (t & (stride - 1)), high = low + stride;
      const bool up = (low & size) == 0;
      if ((key[low] > key[high]) == up) {
        const unsigned k = key[low], v = value[low];
        key[low] = key[high];
        value[low] = value[high];
        key[high] = k;
        value[high] = v;
      }
    }
  }
  __syncthreads();
  for (unsigned i = t; i < 512; i += 256) {
    keys[base + i] = key[i];
    values[base + i] = value[i];
  }
}

// One key a lane, exchanged by shuffles.
extern "C" __global__ void sort_warp(int* keys) {
  const int lane = threadIdx.x % 32, i = blockIdx.x * blockDim.x + threadIdx.x;
  int key = keys[i];
  for (int size = 2; size <= 32; size *= 2)
    for (int stride = size / 2; stride > 0; stride /= 2) {
      const int other = __shfl_xor_sync(0xffffffffu, key, stride);
      const bool keep_small = ((lane & stride) == 0) == ((lane & size) == 0);
      key = keep_small ? min(key, other) : max(key, other);
    }
  keys[i] = key;
}
