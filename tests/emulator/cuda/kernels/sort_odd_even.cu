// tests/emulator/cuda/kernels/sort_odd_even.cu - Batcher's merge exchange, and bricks, on doubles
extern "C" __global__ void sort_odd_even(double* data, int n) {
  extern __shared__ double item[];
  const int t = threadIdx.x;
  item[t] = data[blockIdx.x * n + t];
  __syncthreads();
  for (int p = n / 2; p > 0; p /= 2) {
    int q = n / 2, r = 0, d = p;
    while (true) {
      if (t < n - d && (t & p) == r && item[t] > item[t + d]) {
        const double kept = item[t];
        item[t] = item[t + d];
        item[t + d] = kept;
      }
      __syncthreads();
      if (q == p) break;
      d = q - p;
      q /= 2;
      r = p;
    }
  }
  data[blockIdx.x * n + t] = item[t];
}

extern "C" __global__ void sort_bricks(short* data, int n) {
  __shared__ short item[128];
  const int t = threadIdx.x;
  for (int i = t; i < n; i += blockDim.x) item[i] = data[i];
  __syncthreads();
  for (int round = 0; round < n; ++round) {
    const int at = 2 * t + (round & 1);
    if (at + 1 < n && item[at] > item[at + 1]) {
      const short kept = item[at];
      item[at] = item[at + 1];
      item[at + 1] = kept;
    }
    __syncthreads();
  }
  for (int i = t; i < n; i += blockDim.x) data[i] = item[i];
}
