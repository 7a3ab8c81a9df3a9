// tests/emulator/cuda/kernels/path_finder.cu - cheapest path down a grid, several rows a launch
extern "C" __global__ void path_finder(const int* wall, const int* from, int* to, int columns,
                                       int first_row, int rows) {
  __shared__ int before[128], now[128];
  const int t = threadIdx.x, useful = blockDim.x - 2 * rows;
  const int x = blockIdx.x * useful + t - rows;
  const bool inside = x >= 0 && x < columns;
  before[t] = inside ? from[x] : 0x3fffffff;
  __syncthreads();
  for (int r = 0; r < rows; ++r) {
    if (t > r && t < blockDim.x - 1 - r && inside) {
      int least = before[t];
      if (x > 0) least = min(least, before[t - 1]);
      if (x < columns - 1) least = min(least, before[t + 1]);
      now[t] = least + wall[(first_row + r) * columns + x];
    } else {
      now[t] = 0x3fffffff;
    }
    __syncthreads();
    before[t] = now[t];
    __syncthreads();
  }
  if (t >= rows && t < blockDim.x - rows && inside) to[x] = before[t];
}
