// tests/compile_fail/order_of_bits.cpp - bits have no order
// expect: bits have no order: say how to read them with bitcast<u32>()
#include "ptxgen/builder.hpp"

using namespace ptxgen;

void kernel(KernelBuilder& k, Value<b32> a, Value<b32> b) {
#ifdef WRONG
  k.if_(a < b, [] {});
#else
  k.if_(k.bitcast<u32>(a) < k.bitcast<u32>(b), [] {});
#endif
}
