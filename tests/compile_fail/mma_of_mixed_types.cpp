// tests/compile_fail/mma_of_mixed_types.cpp - PTX has no mma of f16 and bf16
// expect: PTX has no such mma: there are f16 x f16 to f32 or f16 and bf16 x bf16 to f32
#include "ptxgen/builder.hpp"
#include "ptxgen/builder/matrix.hpp"

using namespace ptxgen;

void kernel(KernelBuilder& k, const FragmentA<m16n8k16, f16>& a, const FragmentB<m16n8k16, f16>& b,
            [[maybe_unused]] const FragmentB<m16n8k16, bf16>& other,
            const FragmentC<m16n8k16, f32>& c) {
#ifdef WRONG
  mma(k, a, other, c);
#endif
  mma(k, a, b, c);
}
