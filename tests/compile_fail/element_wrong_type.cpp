// tests/compile_fail/element_wrong_type.cpp - an element takes its own type
// expect: operator=
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(Ptr<f32> p, Value<u32> a, Value<f32> b) {
  p[0] = a;
  static_cast<void>(a);
  static_cast<void>(b);
}
#else
void kernel(Ptr<f32> p, Value<u32> a, Value<f32> b) {
  p[0] = b;
  static_cast<void>(a);
  static_cast<void>(b);
}
#endif
