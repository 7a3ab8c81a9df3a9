// tests/compile_fail/inplace_or_of_float.cpp - variables of floats have no bits either
// expect: floats have no bitwise operations: bitcast<b32>() (b16, b64) gives their bits
#include "ptxgen/builder.hpp"

using namespace ptxgen;

void kernel(Var<f32>& a) {
#ifdef WRONG
  a |= 1.0f;
#else
  a += 1.0f;
#endif
}
