// tests/compile_fail/fragment_of_other_shape.cpp - fragments of a product have one shape
// expect: the fragments of an mma belong to one shape
#include "ptxgen/builder.hpp"
#include "ptxgen/builder/matrix.hpp"

using namespace ptxgen;

void kernel(KernelBuilder& k, const FragmentA<m16n8k16, f16>& a, const FragmentB<m16n8k16, f16>& b,
            [[maybe_unused]] const FragmentB<m16n8k8, f16>& short_b,
            const FragmentC<m16n8k16, f32>& c) {
#ifdef WRONG
  mma(k, a, short_b, c);
#endif
  mma(k, a, b, c);
}
