// tests/emulator/cuda/kernels/stencil_1d.cu - seven-point sum with a halo in shared memory
#define RADIUS 3

extern "C" __global__ void stencil_1d(const int* in, int* out, int n) {
  extern __shared__ int tile[];
  const int g = blockIdx.x * blockDim.x + threadIdx.x, l = threadIdx.x + RADIUS;
  tile[l] = g < n ? in[g] : 0;
  if (threadIdx.x < RADIUS) {
    const int left = g - RADIUS, right = g + blockDim.x;
    tile[threadIdx.x] = left >= 0 && left < n ? in[left] : 0;
    tile[l + blockDim.x] = right < n ? in[right] : 0;
  }
  __syncthreads();
  if (g >= n) return;
  int sum = 0;
#pragma unroll
  for (int d = -RADIUS; d <= RADIUS; ++d) sum += tile[l + d] * (d + 4);
  out[g] = sum;
}
