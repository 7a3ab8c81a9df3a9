// tests/compile_fail/mix_inplace.cpp - a variable takes operands of its own type
// expect: operands have different types: convert one of them with convert<To>()
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Var<f32>& sum, Value<f64> a, Value<f32> b) {
  k.add_inplace(sum, a);
  static_cast<void>(a);
  static_cast<void>(b);
}
#else
void kernel(KernelBuilder& k, Var<f32>& sum, Value<f64> a, Value<f32> b) {
  k.add_inplace(sum, b);
  static_cast<void>(a);
  static_cast<void>(b);
}
#endif
