// tests/emulator/cuda/kernels/assertions.cu - assertions that hold
#include <cassert>

__device__ int half_of(int even) {
  assert(even % 2 == 0 && "even numbers only");
  return even / 2;
}

extern "C" __global__ void assertions(const int* in, int* out, int n) {
  assert(gridDim.x * blockDim.x >= static_cast<unsigned>(n));
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  assert(in != nullptr && out != nullptr);
  if (in[i] % 2 == 0)
    out[i] = half_of(in[i]);
  else
    out[i] = -1;
}
