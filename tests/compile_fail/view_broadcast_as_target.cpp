// tests/compile_fail/view_broadcast_as_target.cpp - falsification 40: a broadcast is no target
// expect: no matching function for call to
#include "ptxgen/builder.hpp"
#include "ptxgen/runtime/device/view_copy.hpp"

using namespace ptxgen;

void fill(const Context& context, const DeviceView<f32>& to, const HostView<f32>& from) {
#ifdef WRONG
  (void)copy(context, to.broadcast({4, 8}), from);
#else
  (void)copy(context, to, from);
#endif
}
