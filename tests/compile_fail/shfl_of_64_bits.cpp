// tests/compile_fail/shfl_of_64_bits.cpp - shuffles move 32 bits
// expect: shfl moves 32-bit values: unpack wider ones
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Value<f64> d, Value<f32> f) {
  k.shfl_bfly(d, 1);
  static_cast<void>(d);
  static_cast<void>(f);
}
#else
void kernel(KernelBuilder& k, Value<f64> d, Value<f32> f) {
  k.shfl_bfly(f, 1);
  static_cast<void>(d);
  static_cast<void>(f);
}
#endif
