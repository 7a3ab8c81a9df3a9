// tests/compile_fail/launch_wrong_count.cpp - a launch passes every argument
// expect: the launch has another number of arguments than the kernel has parameters
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(const Kernel<f32, u32>& k) { static_cast<void>(k.pack(1.0f)); }
#else
void kernel(const Kernel<f32, u32>& k) { static_cast<void>(k.pack(1.0f, std::uint32_t{1})); }
#endif
