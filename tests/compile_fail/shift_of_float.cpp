// tests/compile_fail/shift_of_float.cpp - floats are not shifted
// expect: floats have no bitwise operations: bitcast<b32>() (b16, b64) gives their bits
#include "ptxgen/builder.hpp"

using namespace ptxgen;

void kernel([[maybe_unused]] KernelBuilder& k, Ptr<u32> x, Value<f32> a) {
#ifdef WRONG
  x[0] = a << 1;
#else
  x[0] = k.convert<u32>(a) << 1;
#endif
}
