// tests/emulator/cuda/kernels/lu.cu - LU with pivots, exact determinants
extern "C" __global__ void lu(double* a, int n, int* pivots, double* determinant) {
  extern __shared__ double m[];
  __shared__ int pivot;
  __shared__ double sign;
  const int t = threadIdx.x;
  for (int i = t; i < n * n; i += blockDim.x) m[i] = a[i];
  if (t == 0) sign = 1;
  __syncthreads();
  for (int k = 0; k < n; ++k) {
    if (t == 0) {
      int best = k;
      for (int r = k + 1; r < n; ++r)
        if (fabs(m[r * n + k]) > fabs(m[best * n + k])) best = r;
      pivot = best;
      pivots[k] = best;
      if (best != k) sign = -sign;
    }
    __syncthreads();
    if (pivot != k)
      for (int c = t; c < n; c += blockDim.x) {
        const double kept = m[k * n + c];
        m[k * n + c] = m[pivot * n + c];
        m[pivot * n + c] = kept;
      }
    __syncthreads();
    for (int r = k + 1 + t; r < n; r += blockDim.x) m[r * n + k] /= m[k * n + k];
    __syncthreads();
    const int left = n - k - 1;
    for (int i = t; i < left * left; i += blockDim.x) {
      const int r = k + 1 + i / left, c = k + 1 + i % left;
      m[r * n + c] -= m[r * n + k] * m[k * n + c];
    }
    __syncthreads();
  }
  for (int i = t; i < n * n; i += blockDim.x) a[i] = m[i];
  if (t == 0) {
    double product = sign;
    for (int k = 0; k < n; ++k) product *= m[k * n + k];
    *determinant = product;
  }
}

// Fraction-free elimination: each thread a 5 x 5 determinant of its own in registers.
extern "C" __global__ void small_determinants(const int* in, long long* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  long long m[5][5];
  for (int r = 0; r < 5; ++r)
    for (int c = 0; c < 5; ++c) m[r][c] = in[i * 25 + r * 5 + c];
  long long before = 1;
  int sign = 1;
  for (int k = 0; k < 4; ++k) {
    if (m[k][k] == 0) {
      int r = k + 1;
      while (r < 5 && m[r][k] == 0) ++r;
      if (r == 5) {
        out[i] = 0;
        return;
      }
      for (int c = 0; c < 5; ++c) {
        const long long kept = m[k][c];
        m[k][c] = m[r][c];
        m[r][c] = kept;
      }
      sign = -sign;
    }
    for (int r = k + 1; r < 5; ++r)
      for (int c = k + 1; c < 5; ++c) m[r][c] = (m[r][c] * m[k][k] - m[r][k] * m[k][c]) / before;
    before = m[k][k];
  }
  out[i] = sign * m[4][4];
}
