// tests/compile_fail/index_from_memory.cpp - an index is read before it is used
// expect: an index is itself an element of memory: read it first, Value<u32> i = indices[n]; then
// x[i]
#include "ptxgen/builder.hpp"

using namespace ptxgen;

void kernel(Ptr<f32> x, Ptr<u32> indices, Value<u32> n) {
#ifdef WRONG
  x[indices[n]] = 1.0f;
#else
  Value<u32> i = indices[n];
  x[i] = 1.0f;
#endif
}
