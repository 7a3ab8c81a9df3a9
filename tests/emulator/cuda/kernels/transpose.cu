// tests/emulator/cuda/kernels/transpose.cu - matrix transposes, three ways
extern "C" __global__ void transpose_plain(const float* in, float* out, int rows, int columns) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < columns && y < rows) out[x * rows + y] = in[y * columns + x];
}

template <int kWidth>
__device__ void transpose_by_tile(float (*tile)[kWidth], const float* in, float* out, int rows,
                                  int columns) {
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < columns && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < rows && y + j < columns) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void transpose_tiled(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[32][32];
  transpose_by_tile<32>(tile, in, out, rows, columns);
}

extern "C" __global__ void transpose_padded(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[32][33];
  transpose_by_tile<33>(tile, in, out, rows, columns);
}
