// tests/compile_fail/copy_variable.cpp - a variable is not copied by auto
// expect: Var
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Var<f32>& max) {
  auto old = max;
  static_cast<void>(k);
  static_cast<void>(old);
}
#else
void kernel(KernelBuilder& k, Var<f32>& max) {
  Value<f32> old = max;
  static_cast<void>(k);
  static_cast<void>(old);
}
#endif
