// tests/compile_fail/fma_of_integers.cpp - fma is for floats
// expect: fma is for floats; mad_lo, mad_hi and mad_wide for integers
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Value<u32> i) { k.fma(i, i, i); }
#else
void kernel(KernelBuilder& k, Value<u32> i) { k.mad_lo(i, i, i); }
#endif
