// tests/compile_fail/mix_f32_u32.cpp - f32 and u32 do not mix in an operator
// expect: operands_differ_use_convert
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(Value<f32> a, Value<u32> b, Value<f32> c) {
  static_cast<void>(a + b);
  static_cast<void>(b);
  static_cast<void>(c);
}
#else
void kernel(Value<f32> a, Value<u32> b, Value<f32> c) {
  static_cast<void>(a + c);
  static_cast<void>(b);
  static_cast<void>(c);
}
#endif
