// tests/emulator/defects/cuda/clean_assert.cu - an assertion that holds
// run: grid=1 block=64 args="iota:256 u32:64"
// expect: clean assert
#include <cassert>
extern "C" __global__ void kernel(unsigned* out, unsigned n) {
  assert(out[threadIdx.x] < n);
  out[threadIdx.x] = 1;
}
