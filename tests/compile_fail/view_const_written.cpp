// tests/compile_fail/view_const_written.cpp - falsification 40: const elements are not written
// expect gcc: assignment of read-only location
// expect clang: returns a const value
#include "ptxgen/builder.hpp"
#include "ptxgen/kernels/view.hpp"

using namespace ptxgen;

#ifdef WRONG
using Element = const f32;
#else
using Element = f32;
#endif

void write(const HostView<Element>& view) { view(0, 0) = 1.0f; }
