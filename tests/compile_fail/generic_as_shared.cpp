// tests/compile_fail/generic_as_shared.cpp - a generic address is no shared one
// expect: Shared
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Ptr<f32, Generic> g) { k.st_shared(g, 1.0f); }
#else
void kernel(KernelBuilder& k, Ptr<f32, Generic> g) { k.st_shared(k.cvta_to<Shared>(g), 1.0f); }
#endif
