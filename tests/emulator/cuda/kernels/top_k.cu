// tests/emulator/cuda/kernels/top_k.cu - the k largest of a row
extern "C" __global__ void top_k(const float* in, int n, int k, float* values, int* places) {
  __shared__ float best[128];
  __shared__ int where[128];
  extern __shared__ unsigned taken[];
  const int t = threadIdx.x;
  const float* row = in + blockIdx.x * n;
  for (int i = t; i < (n + 31) / 32; i += blockDim.x) taken[i] = 0;
  __syncthreads();
  for (int round = 0; round < k; ++round) {
    float most = -INFINITY;
    int at = n;
    for (int i = t; i < n; i += blockDim.x) {
      if (taken[i / 32] >> (i % 32) & 1) continue;
      if (row[i] > most) {
        most = row[i];
        at = i;
      }
    }
    best[t] = most;
    where[t] = at;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
      if (t < half) {
        const bool better =
            best[t + half] > best[t] || (best[t + half] == best[t] && where[t + half] < where[t]);
        if (better) {
          best[t] = best[t + half];
          where[t] = where[t + half];
        }
      }
      __syncthreads();
    }
    if (t == 0) {
      values[blockIdx.x * k + round] = best[0];
      places[blockIdx.x * k + round] = where[0];
      taken[where[0] / 32] |= 1u << (where[0] % 32);
    }
    __syncthreads();
  }
}
