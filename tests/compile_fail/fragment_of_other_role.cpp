// tests/compile_fail/fragment_of_other_role.cpp - operands of mma are fragments a, b, c
// expect: the second operand of mma is a fragment of role b
#include "ptxgen/builder.hpp"
#include "ptxgen/builder/matrix.hpp"

using namespace ptxgen;

void kernel(KernelBuilder& k, const FragmentA<m16n8k16, f16>& a, const FragmentB<m16n8k16, f16>& b,
            const FragmentC<m16n8k16, f32>& c) {
#ifdef WRONG
  mma(k, a, a, c);
#endif
  mma(k, a, b, c);
}
