// tests/compile_fail/bitwise_and_of_floats.cpp - floats have no bitwise operations
// expect: floats have no bitwise operations: bitcast<b32>() (b16, b64) gives their bits
#include "ptxgen/builder.hpp"

using namespace ptxgen;

void kernel([[maybe_unused]] KernelBuilder& k, Ptr<f32> x, Value<f32> a) {
#ifdef WRONG
  x[0] = a & a;
#else
  x[0] = k.bitcast<f32>(k.bitcast<b32>(a) & k.bitcast<b32>(a));
#endif
}
