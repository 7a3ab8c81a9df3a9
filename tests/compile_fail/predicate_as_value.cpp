// tests/compile_fail/predicate_as_value.cpp - a predicate is no number
// expect: operands_differ_use_convert
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(Pred p, Value<u32> a) {
  static_cast<void>(a + p);
  static_cast<void>(p);
}
#else
void kernel(Pred p, Value<u32> a) {
  static_cast<void>(a + select(p, a, 0));
  static_cast<void>(p);
}
#endif
