// tests/emulator/cuda/kernels/spmv.cu - sparse matrix times vector, three ways
extern "C" __global__ void spmv_threads(const int* starts, const int* columns, const float* values,
                                        const float* x, float* y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = starts[row]; i < starts[row + 1]; ++i) sum += values[i] * x[columns[i]];
  y[row] = sum;
}

extern "C" __global__ void spmv_warps(const int* starts, const int* columns, const float* values,
                                      const float* x, float* y, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0;
  for (int i = starts[row] + lane; i < starts[row + 1]; i += 32) sum += values[i] * x[columns[i]];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (lane == 0) y[row] = sum;
}

// Segmented sums inside a warp, atomics where a segment ends.
extern "C" __global__ void spmv_entries(const int* rows, const int* columns, const float* values,
                                        const float* x, float* y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  const int row = i < count ? rows[i] : -1;
  float sum = i < count ? values[i] * x[columns[i]] : 0.0f;
  for (int step = 1; step < 32; step *= 2) {
    const int other_row = __shfl_up_sync(0xffffffffu, row, step);
    const float other = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step && other_row == row) sum += other;
  }
  const int next = __shfl_down_sync(0xffffffffu, row, 1);
  if (row >= 0 && (lane == 31 || next != row)) atomicAdd(&y[row], sum);
}
