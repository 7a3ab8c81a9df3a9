// tests/compile_fail/double_literal_for_f32.cpp - a double literal is no f32
// expect: operator*
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(Value<f32> a) { static_cast<void>(a * 0.1); }
#else
void kernel(Value<f32> a) { static_cast<void>(a * 0.1f); }
#endif
