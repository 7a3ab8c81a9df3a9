// tests/compile_fail/cp_async_to_global.cpp - cp_async writes shared memory
// expect: cp_async copies from global to shared memory
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Ptr<f32, Shared> s, Ptr<f32> g) {
  k.cp_async(g, g, 4);
  static_cast<void>(s);
}
#else
void kernel(KernelBuilder& k, Ptr<f32, Shared> s, Ptr<f32> g) {
  k.cp_async(s, g, 4);
  static_cast<void>(s);
}
#endif
