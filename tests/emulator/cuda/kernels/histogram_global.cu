// tests/emulator/cuda/kernels/histogram_global.cu - bins in global memory, float keys, weights
extern "C" __global__ void histogram_global(const float* values, int n, float low, float width,
                                            int bins, unsigned long long* counts) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int bin = static_cast<int>((values[i] - low) / width);
  if (bin >= 0 && bin < bins) atomicAdd(&counts[bin], 1ull);
}

extern "C" __global__ void histogram_weighted(const unsigned char* keys, const double* weights,
                                              int n, double* sums) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&sums[keys[i] % 16], weights[i]);
}
