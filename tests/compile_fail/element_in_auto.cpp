// tests/compile_fail/element_in_auto.cpp - an element is no value to keep
// expect: an element p[i] was kept with auto, which holds no value: write Value<f32> x = p[i];
#include "ptxgen/builder.hpp"

using namespace ptxgen;

void kernel(Ptr<f32> x) {
#ifdef WRONG
  auto e = x[3];
  x[0] = e + 1.0f;
#else
  Value<f32> e = x[3];
  x[0] = e + 1.0f;
#endif
}
