// tests/compile_fail/condition_is_value.cpp - if_ takes a predicate
// expect: In<pred>
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Value<u32> a) {
  k.if_(a, [] {});
}
#else
void kernel(KernelBuilder& k, Value<u32> a) {
  k.if_(a != 0, [] {});
}
#endif
