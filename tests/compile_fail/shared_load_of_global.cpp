// tests/compile_fail/shared_load_of_global.cpp - ld_shared takes a shared pointer
// expect: Shared
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Ptr<f32, Shared> s, Ptr<f32, Global> g) {
  k.ld_shared(g);
  static_cast<void>(s);
  static_cast<void>(g);
}
#else
void kernel(KernelBuilder& k, Ptr<f32, Shared> s, Ptr<f32, Global> g) {
  k.ld_shared(s);
  static_cast<void>(s);
  static_cast<void>(g);
}
#endif
