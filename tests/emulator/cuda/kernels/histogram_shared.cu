// tests/emulator/cuda/kernels/histogram_shared.cu - byte histogram, private to each block first
extern "C" __global__ void histogram_shared(const unsigned* words, int count, unsigned* bins) {
  __shared__ unsigned mine[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) mine[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const unsigned word = words[i];
    atomicAdd(&mine[word & 255], 1);
    atomicAdd(&mine[word >> 8 & 255], 1);
    atomicAdd(&mine[word >> 16 & 255], 1);
    atomicAdd(&mine[word >> 24], 1);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (mine[i] != 0) atomicAdd(&bins[i], mine[i]);
}
