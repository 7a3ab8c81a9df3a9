// tests/compile_fail/float_literal_for_integer.cpp - a float literal is no u32
// expect: integers take integer literals only: write 2, or convert<f32>() the value
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(Value<u32> a) { static_cast<void>(a + 1.5f); }
#else
void kernel(Value<u32> a) { static_cast<void>(a + 1); }
#endif
