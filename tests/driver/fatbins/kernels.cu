// tests/driver/fatbins/kernels.cu - the source of the stored fat binaries
// nvcc 13.0.88 -arch=compute_80 -code=compute_80 -fatbin --compress-mode=MODE -o MODE.fatbin
extern "C" __global__ void scale(float* data, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = data[i] * factor + 1.0f;
}
extern "C" __global__ void reverse(int* data, int n) {
  __shared__ int part[256];
  int t = threadIdx.x;
  if (t < n) part[t] = data[t];
  __syncthreads();
  if (t < n) data[t] = part[n - 1 - t];
}
