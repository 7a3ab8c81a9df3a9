// tests/compile_fail/bitcast_changes_width.cpp - bitcast keeps the width
// expect: bitcast keeps the width: use cvt to change it
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k, Value<f32> f) { static_cast<void>(k.bitcast<u64>(f)); }
#else
void kernel(KernelBuilder& k, Value<f32> f) { static_cast<void>(k.bitcast<u32>(f)); }
#endif
