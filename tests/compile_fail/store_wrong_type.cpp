// tests/compile_fail/store_wrong_type.cpp - a store takes the pointer's type
// expect: what is stored has the type of the pointer's elements
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Ptr<f32> p, Value<u32> a, Value<f32> b) {
  k.st(p, a);
  static_cast<void>(a);
  static_cast<void>(b);
}
#else
void kernel(KernelBuilder& k, Ptr<f32> p, Value<u32> a, Value<f32> b) {
  k.st(p, b);
  static_cast<void>(a);
  static_cast<void>(b);
}
#endif
