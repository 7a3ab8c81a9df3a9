// tests/emulator/defects/cuda/deep_recursion.cu - a recursion that never ends
// run: grid=1 block=32 args="zero:4096"
// expect: stack-overflow
__device__ __noinline__ unsigned descend(unsigned depth,
                                         volatile unsigned* out) {  // <~ stack-overflow
  volatile unsigned frame[64];
  frame[depth % 64] = depth;
  if (out[1] == 99) return frame[depth % 64];
  return descend(depth + 1, out) + frame[depth % 64];  // <~ stack-overflow
}
extern "C" __global__ void kernel(unsigned* out) {
  out[threadIdx.x + 8] = descend(0, out);  // <~ stack-overflow
}
