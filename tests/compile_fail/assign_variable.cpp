// tests/compile_fail/assign_variable.cpp - a variable is assigned with set
// expect: operator=
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(Var<f32>& a, Var<f32>& b) { a = b; }
#else
void kernel(Var<f32>& a, Var<f32>& b) { a.set(b); }
#endif
