// tests/compile_fail/mad_wide_addend.cpp - the addend of mad_wide is twice as wide
// expect: the third operand of mad_wide is twice as wide as the first two
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Value<u32> a, Value<u64> c) {
  k.mad_wide(a, 4, a);
  static_cast<void>(c);
}
#else
void kernel(KernelBuilder& k, Value<u32> a, Value<u64> c) {
  k.mad_wide(a, 4, c);
  static_cast<void>(c);
}
#endif
