// tests/compile_fail/launch_wrong_type.cpp - a launch passes the parameters' types
// expect: an argument of the launch has another type than the kernel's parameter
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(const Kernel<Ptr<f32>, u32>& k, DeviceAddress<f32> a) {
  static_cast<void>(k.pack(a, 1));
}
#else
void kernel(const Kernel<Ptr<f32>, u32>& k, DeviceAddress<f32> a) {
  static_cast<void>(k.pack(a, std::uint32_t{1}));
}
#endif
