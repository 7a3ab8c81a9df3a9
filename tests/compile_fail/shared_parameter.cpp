// tests/compile_fail/shared_parameter.cpp - a launch cannot pass shared pointers
// expect: a launch cannot pass a pointer into shared or local memory
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k) { static_cast<void>(k.param<Ptr<f32, Shared>>("p")); }
#else
void kernel(KernelBuilder& k) { static_cast<void>(k.param<Ptr<f32, Global>>("p")); }
#endif
