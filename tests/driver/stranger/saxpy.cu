// tests/driver/stranger/saxpy.cu - the kernel of stranger.c, for fat binaries and cubins
extern "C" __global__ void saxpy(float* y, const float* x, float a, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaf(a, x[i], y[i]);
}
