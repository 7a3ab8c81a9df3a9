// tests/compile_fail/launch_wrong_pointer.cpp - a launch passes pointers of the right type
// expect: an argument of the launch has another type than the kernel's parameter
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(const Kernel<Ptr<f32>>& k) { static_cast<void>(k.pack(DeviceAddress<f64>{0})); }
#else
void kernel(const Kernel<Ptr<f32>>& k) { static_cast<void>(k.pack(DeviceAddress<f32>{0})); }
#endif
