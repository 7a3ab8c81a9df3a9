// tests/compile_fail/double_literal_for_f32.cpp - a double literal is no f32
// expect: f32 takes float literals only: write 2.0f, not 2 or 2.0
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(Value<f32> a) { static_cast<void>(a * 0.1); }
#else
void kernel(Value<f32> a) { static_cast<void>(a * 0.1f); }
#endif
