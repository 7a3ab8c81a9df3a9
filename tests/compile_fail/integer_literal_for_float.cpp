// tests/compile_fail/integer_literal_for_float.cpp - an integer literal is no f32
// expect: f32 takes float literals only: write 2.0f, not 2 or 2.0
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Value<f32> a) { k.mul(a, 2); }
#else
void kernel(KernelBuilder& k, Value<f32> a) { k.mul(a, 2.0f); }
#endif
