// tests/compile_fail/typed_launch_view.cpp - falsification 40: launches take typed views
// expect: an argument of the launch does not match its parameter
// expect: LaunchArgument<1, Ptr<f32
// expect: DeviceView<f64
#include "ptxgen/builder.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"

using namespace ptxgen;

#ifdef WRONG
using Memory = DeviceView<f64>;
#else
using Memory = DeviceView<f32>;
#endif

LaunchPlan freeze(const Launcher& launcher, const Kernel<Ptr<f32>>& kernel, const Stream& stream,
                  const Memory& x) {
  return launcher.plan(kernel, {}, stream, x);
}
