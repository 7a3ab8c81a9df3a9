// tests/compile_fail/if_on_comparison.cpp - C++ cannot branch on a comparison
// expect: C++ cannot branch on a predicate, which is known when the kernel runs: use k.if_(p, [&]
// {...})
#include "ptxgen/builder.hpp"

using namespace ptxgen;

void kernel([[maybe_unused]] KernelBuilder& k, Ptr<f32> x, Value<u32> n) {
#ifdef WRONG
  if (n < 4) x[0] = 1.0f;
#else
  k.if_(n < 4, [&] { x[0] = 1.0f; });
#endif
}
