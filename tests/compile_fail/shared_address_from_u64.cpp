// tests/compile_fail/shared_address_from_u64.cpp - a shared address has 32 bits
// expect: In<u32>
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Value<u64> a, Value<u32> b) {
  static_cast<void>(k.pointer<f32, Shared>(a));
  static_cast<void>(a);
  static_cast<void>(b);
}
#else
void kernel(KernelBuilder& k, Value<u64> a, Value<u32> b) {
  static_cast<void>(k.pointer<f32, Shared>(b));
  static_cast<void>(a);
  static_cast<void>(b);
}
#endif
