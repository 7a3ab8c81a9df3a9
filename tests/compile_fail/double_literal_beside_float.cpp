// tests/compile_fail/double_literal_beside_float.cpp - an f32 takes no double
// expect: f32 takes float literals only: write 2.0f, not 2 or 2.0
#include "ptxgen/builder.hpp"

using namespace ptxgen;

void kernel(KernelBuilder& k, Ptr<f32> x, Value<f32> a) {
#ifdef WRONG
  x[0] = k.fma(a, 2.0, a);
#else
  x[0] = k.fma(a, 2.0f, a);
#endif
}
