// tests/compile_fail/mix_u32_s32.cpp - signed and unsigned do not mix
// expect: operands_differ_use_convert
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(Value<u32> a, Value<s32> b, Value<u32> c) {
  static_cast<void>(a == b);
  static_cast<void>(b);
  static_cast<void>(c);
}
#else
void kernel(Value<u32> a, Value<s32> b, Value<u32> c) {
  static_cast<void>(a == c);
  static_cast<void>(b);
  static_cast<void>(c);
}
#endif
