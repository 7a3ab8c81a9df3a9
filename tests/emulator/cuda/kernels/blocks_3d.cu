// tests/emulator/cuda/kernels/blocks_3d.cu - grids and blocks of three dimensions, partial warps
extern "C" __global__ void blocks_3d(unsigned* out) {
  const unsigned rank = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned size = blockDim.x * blockDim.y * blockDim.z;
  unsigned lane, warp;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(warp));
  unsigned* mine = out + (block * size + rank) * 5;
  mine[0] = threadIdx.x | threadIdx.y << 8 | threadIdx.z << 16;
  mine[1] = blockIdx.x | blockIdx.y << 8 | blockIdx.z << 16;
  mine[2] = lane;
  mine[3] = warp;
  mine[4] = __activemask();
}

// A sum over the block whose last warp is not full.
extern "C" __global__ void partial_warps(const int* in, int* out) {
  __shared__ int of_warp[8];
  const int t = threadIdx.y * blockDim.x + threadIdx.x, size = blockDim.x * blockDim.y;
  const int warp = t / 32, in_warp = min(32, size - warp * 32);
  const unsigned mask = in_warp == 32 ? 0xffffffffu : (1u << in_warp) - 1;
  int sum = in[t];
  for (int step = 16; step > 0; step /= 2) {
    const int other = __shfl_down_sync(mask, sum, step);
    if (t % 32 + step < in_warp) sum += other;
  }
  if (t % 32 == 0) of_warp[warp] = sum;
  __syncthreads();
  if (t == 0) {
    int total = 0;
    for (int w = 0; w < (size + 31) / 32; ++w) total += of_warp[w];
    *out = total;
  }
}
