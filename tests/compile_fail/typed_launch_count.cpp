// tests/compile_fail/typed_launch_count.cpp - a typed launch has one argument a parameter
// expect: the launch has another number of arguments than the kernel has parameters
// expect: LaunchArgumentCount<1, 2>
#include "ptxgen/builder.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"

using namespace ptxgen;

void launch(const LoadedKernel<Ptr<f32>, u32>& kernel, const Stream& stream, DeviceSpan<f32> x) {
#ifdef WRONG
  kernel.launch(stream, {}, x);
#else
  kernel.launch(stream, {}, x, 1000u);
#endif
}
