// tests/compile_fail/mix_in_method.cpp - operands of a method have one type
// expect: operands have different types: convert one of them with convert<To>()
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Value<f32> a, Value<u32> b) {
  k.fma(a, a, b);
  static_cast<void>(b);
}
#else
void kernel(KernelBuilder& k, Value<f32> a, Value<u32> b) {
  k.fma(a, a, a);
  static_cast<void>(b);
}
#endif
