// tests/emulator/defects/cuda/past_end.cu - the guard lets one index too many through
// run: grid=2 block=64 args="zero:400 u32:100"
// expect: out-of-bounds
extern "C" __global__ void kernel(float* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) {
    out[i] = 1.0f;  // <- out-of-bounds
  }
}
