// tests/compile_fail/integer_literal_for_float.cpp - an integer literal is no f32
// expect: In
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Value<f32> a) { k.mul(a, 2); }
#else
void kernel(KernelBuilder& k, Value<f32> a) { k.mul(a, 2.0f); }
#endif
