// tests/compile_fail/loop_bounds_differ.cpp - the bounds of a loop have one type
// expect: operands have different types: convert one of them with convert<To>()
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Value<u32> n, Value<s32> m, Value<u32> o) {
  k.for_(n, m, 1, [] {});
  static_cast<void>(m);
  static_cast<void>(o);
}
#else
void kernel(KernelBuilder& k, Value<u32> n, Value<s32> m, Value<u32> o) {
  k.for_(n, o, 1, [] {});
  static_cast<void>(m);
  static_cast<void>(o);
}
#endif
