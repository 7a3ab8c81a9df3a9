// tests/compile_fail/view_of_other_type.cpp - falsification 40: views of other elements
// expect gcc: could not convert
// expect clang: no known conversion from
#include "ptxgen/builder.hpp"
#include "ptxgen/kernels/view.hpp"

using namespace ptxgen;

#ifdef WRONG
using Element = f64;
#else
using Element = f32;
#endif

void take(HostView<f32>);
void pass(const HostView<Element>& view) { take(view); }
