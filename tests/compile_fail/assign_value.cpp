// tests/compile_fail/assign_value.cpp - a value is not assigned
// expect: operator=
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(Value<f32> v, Var<f32>& w, Value<f32> x) {
  v = x;
  static_cast<void>(v);
  static_cast<void>(w);
}
#else
void kernel(Value<f32> v, Var<f32>& w, Value<f32> x) {
  w = x;
  static_cast<void>(v);
  static_cast<void>(w);
}
#endif
