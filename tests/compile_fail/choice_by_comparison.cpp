// tests/compile_fail/choice_by_comparison.cpp - C++ cannot choose by a comparison
// expect: or k.selp(a, b, p) in place of p ? a : b
#include "ptxgen/builder.hpp"

using namespace ptxgen;

void kernel([[maybe_unused]] KernelBuilder& k, Ptr<f32> x, Value<f32> a, Value<u32> n) {
#ifdef WRONG
  x[0] = n < 4 ? a : -a;
#else
  x[0] = k.selp(a, -a, n < 4);
#endif
}
