// tests/compile_fail/body_signature.cpp - the body takes what the parameters say
// expect gcc: Value<f32>
// expect clang: no matching function for call to object of type
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel() {
  static_cast<void>(
      build_kernel("k", "sm_89", params(param<f32>("a")), [](KernelBuilder&, Value<u32>) {}));
}
#else
void kernel() {
  static_cast<void>(
      build_kernel("k", "sm_89", params(param<f32>("a")), [](KernelBuilder&, Value<f32>) {}));
}
#endif
