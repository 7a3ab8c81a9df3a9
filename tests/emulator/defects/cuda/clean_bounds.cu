// tests/emulator/defects/cuda/clean_bounds.cu - the guard lets every index through that is inside
// run: grid=2 block=64 args="zero:400 u32:100"
// expect: clean out-of-bounds
extern "C" __global__ void kernel(float* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = 1.0f;
  }
}
