// tests/compile_fail/remainder_of_floats.cpp - floats have no remainder
// expect: rem (%) is for integers of 16 to 64 bits
#include "ptxgen/builder.hpp"

using namespace ptxgen;

void kernel(Ptr<f32> x, Value<f32> a) {
#ifdef WRONG
  x[0] = a % a;
#else
  x[0] = a / a;
#endif
}
