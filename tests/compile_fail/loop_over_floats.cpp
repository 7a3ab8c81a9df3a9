// tests/compile_fail/loop_over_floats.cpp - loops count with integers
// expect: a loop counts with u32, s32, u64 or s64
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Value<f32> n, Value<u32> m) {
  k.for_(n, n, 1, [] {});
  static_cast<void>(n);
  static_cast<void>(m);
}
#else
void kernel(KernelBuilder& k, Value<f32> n, Value<u32> m) {
  k.for_(m, m, 1, [] {});
  static_cast<void>(n);
  static_cast<void>(m);
}
#endif
