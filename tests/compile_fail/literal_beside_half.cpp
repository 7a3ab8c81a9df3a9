// tests/compile_fail/literal_beside_half.cpp - an f16 has no literals
// expect: f16, bf16, pairs and 8-bit types have no literals: convert<f16>(k.constant<f32>(2.0f))
#include "ptxgen/builder.hpp"

using namespace ptxgen;

void kernel([[maybe_unused]] KernelBuilder& k, Ptr<f16> x, Value<f16> a) {
#ifdef WRONG
  x[0] = a * 2.0f;
#else
  x[0] = a * k.convert<f16>(k.constant<f32>(2.0f));
#endif
}
