// tests/compile_fail/store_to_constant.cpp - constant memory is not written
// expect: constant memory cannot be written
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Ptr<f32, Const> c, Ptr<f32> g) {
  k.st(c, 1.0f);
  static_cast<void>(c);
  static_cast<void>(g);
}
#else
void kernel(KernelBuilder& k, Ptr<f32, Const> c, Ptr<f32> g) {
  k.st(g, 1.0f);
  static_cast<void>(c);
  static_cast<void>(g);
}
#endif
