// tests/emulator/defects/cuda/failing_assert.cu - an assertion that one thread breaks
// run: grid=1 block=64 args="iota:256 u32:63"
// expect: assert
#include <cassert>
extern "C" __global__ void kernel(unsigned* out, unsigned n) {
  assert(out[threadIdx.x] < n);  // <- assert
  out[threadIdx.x] = 1;
}
