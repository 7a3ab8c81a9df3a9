// tests/compile_fail/mix_in_bitwise.cpp - operands of bitwise operations have one type
// expect: operands_differ_use_convert
#include "ptxgen/builder.hpp"

using namespace ptxgen;

void kernel([[maybe_unused]] KernelBuilder& k, Ptr<u32> x, Value<u32> a, Value<s32> b) {
#ifdef WRONG
  x[0] = a & b;
#else
  x[0] = a & k.convert<u32>(b);
#endif
}
