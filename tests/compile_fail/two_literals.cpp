// tests/compile_fail/two_literals.cpp - literals alone have no type
// expect: an operand must be a value of this kernel
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Value<u32> a) {
  k.add(1, 2);
  static_cast<void>(a);
}
#else
void kernel(KernelBuilder& k, Value<u32> a) {
  k.add(a, 2);
  static_cast<void>(a);
}
#endif
