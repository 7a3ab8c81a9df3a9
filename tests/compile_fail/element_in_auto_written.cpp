// tests/compile_fail/element_in_auto_written.cpp - an element kept with auto is not written
// expect: an element p[i] was kept with auto, which holds no value: write Value<f32> x = p[i];
#include "ptxgen/builder.hpp"

using namespace ptxgen;

void kernel(Ptr<f32> x) {
#ifdef WRONG
  auto e = x[3];
  e = 1.0f;
#else
  x[3] = 1.0f;
#endif
}
