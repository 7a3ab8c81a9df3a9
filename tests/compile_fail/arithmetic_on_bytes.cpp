// tests/compile_fail/arithmetic_on_bytes.cpp - 8-bit values are converted first
// expect: PTX computes with integers of 16 to 64 bits
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Value<u8> b) { k.add(b, 1); }
#else
void kernel(KernelBuilder& k, Value<u8> b) { k.add(k.convert<u32>(b), 1); }
#endif
