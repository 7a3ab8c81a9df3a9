// tests/emulator/cuda/kernels/linear_algebra.cu - products with matrix and transpose, Gram-Schmidt
extern "C" __global__ void times_matrix(const double* a, const double* x, double* y, int rows,
                                        int columns) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  double sum = 0;
  for (int j = 0; j < columns; ++j) sum += a[i * columns + j] * x[j];
  y[i] = sum;
}

extern "C" __global__ void times_transpose(const double* a, const double* x, double* y, int rows,
                                           int columns) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= columns) return;
  double sum = 0;
  for (int i = 0; i < rows; ++i) sum += a[i * columns + j] * x[i];
  y[j] = sum;
}

// Means, deviations and correlations of columns.
extern "C" __global__ void correlation(const double* data, double* out, int rows, int columns) {
  const int a = blockIdx.y * blockDim.y + threadIdx.y, b = blockIdx.x * blockDim.x + threadIdx.x;
  if (a >= columns || b >= columns) return;
  double sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
  for (int i = 0; i < rows; ++i) {
    const double x = data[i * columns + a], y = data[i * columns + b];
    sa += x;
    sb += y;
    saa += x * x;
    sbb += y * y;
    sab += x * y;
  }
  const double va = saa - sa * sa / rows, vb = sbb - sb * sb / rows;
  out[a * columns + b] = a == b ? 1.0 : (sab - sa * sb / rows) / sqrt(va * vb);
}

// One block; columns become orthonormal one after the other.
extern "C" __global__ void gram_schmidt(float* a, int rows, int columns) {
  __shared__ float part[64];
  __shared__ float factor;
  const int t = threadIdx.x;
  for (int k = 0; k < columns; ++k) {
    for (int j = 0; j <= k; ++j) {
      float sum = 0;
      for (int i = t; i < rows; i += 64) sum += a[i * columns + k] * a[i * columns + j];
      part[t] = sum;
      __syncthreads();
      if (t < 32) {
        float both = part[t] + part[t + 32];
        for (int step = 16; step > 0; step /= 2) both += __shfl_down_sync(0xffffffffu, both, step);
        if (t == 0) factor = both;
      }
      __syncthreads();
      for (int i = t; i < rows; i += 64) {
        if (j < k)
          a[i * columns + k] -= factor * a[i * columns + j];
        else
          a[i * columns + k] *= rsqrtf(factor);
      }
      __syncthreads();
    }
  }
}
