// tests/compile_fail/mix_f32_f64.cpp - f32 and f64 do not mix in an operator
// expect: operands_differ_use_convert
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(Value<f32> a, Value<f64> b, Value<f64> c) {
  static_cast<void>(a * c);
  static_cast<void>(a);
  static_cast<void>(b);
}
#else
void kernel(Value<f32> a, Value<f64> b, Value<f64> c) {
  static_cast<void>(b * c);
  static_cast<void>(a);
  static_cast<void>(b);
}
#endif
