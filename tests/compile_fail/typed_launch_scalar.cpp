// tests/compile_fail/typed_launch_scalar.cpp - a typed launch names position and types
// expect: an argument of the launch does not match its parameter
// expect gcc: LaunchArgument<2, f32, double>
// expect: LaunchArgument<3, u32, int>
#include "ptxgen/builder.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"

using namespace ptxgen;

void launch(const Launcher& launcher, const Kernel<Ptr<f32>, f32, u32>& kernel,
            const Stream& stream, const Buffer<f32>& x) {
#ifdef WRONG
  launcher.launch(kernel, {}, stream, x, 2.0, 1000);
#else
  launcher.launch(kernel, {}, stream, x, 2.0f, 1000u);
#endif
}
