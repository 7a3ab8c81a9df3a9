// tests/compile_fail/launch_wrong_order.cpp - a launch passes arguments in order
// expect: an argument of the launch has another type than the kernel's parameter
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(const Kernel<f32, u32>& k) { static_cast<void>(k.pack(std::uint32_t{1}, 1.0f)); }
#else
void kernel(const Kernel<f32, u32>& k) { static_cast<void>(k.pack(1.0f, std::uint32_t{1})); }
#endif
