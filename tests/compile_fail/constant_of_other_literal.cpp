// tests/compile_fail/constant_of_other_literal.cpp - a constant has its type's literal
// expect: f32 takes float literals only: write 2.0f, not 2 or 2.0
#include "ptxgen/builder.hpp"

using namespace ptxgen;

void kernel(KernelBuilder& k, Ptr<f32> x) {
#ifdef WRONG
  x[0] = k.constant<f32>(2);
#else
  x[0] = k.constant<f32>(2.0f);
#endif
}
