// tests/emulator/cuda/kernels/argmax.cu - argmax by a packed 64-bit atomic
__device__ unsigned ordered(float value) {
  const unsigned bits = __float_as_uint(value);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

extern "C" __global__ void argmax(const float* in, int n, unsigned long long* best) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long mine = 0;
  if (i < n)
    mine = static_cast<unsigned long long>(ordered(in[i])) << 32 | ~static_cast<unsigned>(i);
  for (int step = 16; step > 0; step /= 2) {
    const unsigned long long other = __shfl_down_sync(0xffffffffu, mine, step);
    mine = max(mine, other);
  }
  if (threadIdx.x % 32 == 0 && mine != 0) atomicMax(best, mine);
}
