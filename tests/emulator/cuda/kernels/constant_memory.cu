// tests/emulator/cuda/kernels/constant_memory.cu - constant tables, __ldg, module variables
extern "C" __constant__ float filter[25];
extern "C" __device__ int offsets[8];
extern "C" __device__ unsigned calls = 5;
__constant__ unsigned char steps[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
__device__ const double roots[4] = {0.0, 1.0, 1.4142135623730951, 1.7320508075688772};

extern "C" __global__ void convolve(const float* __restrict__ in, float* out, int width,
                                    int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int j = -2; j <= 2; ++j)
    for (int i = -2; i <= 2; ++i) {
      const int sx = min(max(x + i, 0), width - 1), sy = min(max(y + j, 0), height - 1);
      sum += __ldg(&in[sy * width + sx]) * filter[(j + 2) * 5 + i + 2];
    }
  out[y * width + x] = sum;
}

extern "C" __global__ void tables(const int* in, int* out, double* rooted) {
  const int i = threadIdx.x;
  out[i] = offsets[in[i] & 7] + steps[in[i] & 15] * 100;
  rooted[i] = roots[in[i] & 3];
  atomicAdd(&calls, 1u);
}
