// tests/compile_fail/shared_global_pointer.cpp - a shared pointer is no global one
// expect gcc: Ptr<f32, Shared>
// expect clang: no known conversion from 'Ptr<[...], Shared>' to 'Ptr<[...], Global>'
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void take(Ptr<f32, Global>);
void kernel(Ptr<f32, Shared> s, Ptr<f32, Global> g) {
  take(s);
  static_cast<void>(s);
  static_cast<void>(g);
}
#else
void take(Ptr<f32, Global>);
void kernel(Ptr<f32, Shared> s, Ptr<f32, Global> g) {
  take(g);
  static_cast<void>(s);
  static_cast<void>(g);
}
#endif
