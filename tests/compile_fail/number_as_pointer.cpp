// tests/compile_fail/number_as_pointer.cpp - a number is no address
// expect: ld
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Value<u64> a) { static_cast<void>(k.ld(a)); }
#else
void kernel(KernelBuilder& k, Value<u64> a) { static_cast<void>(k.ld(k.pointer<f32>(a))); }
#endif
