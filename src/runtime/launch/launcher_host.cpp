// src/runtime/launch/launcher_host.cpp - described kernels on a device of kind Host
#include <functional>
#include <utility>

#include "ptxgen/support/error.hpp"
#include "runtime/device/device_state.hpp"
#include "runtime/launch/host_launch.hpp"
#include "runtime/launch/launch_plan.hpp"
#include "runtime/launch/launcher_state.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kVectors = "host: the kernel's function, with vectors";
constexpr std::string_view kNoFunction = "host: the kernel has no function of its own";
constexpr std::string_view kScalar = "host: no vectors";

// What the geometry of a launch refuses: a size that leaves nothing to do. A family would choose a
// plan for it, which is not needed here.
void refuse_empty(const KernelDescription& kernel, const void* spec, const ptx::Gpu& gpu) {
  if (kernel.family != nullptr) {
    std::vector<std::uint64_t> values(kernel.parameters.size());
    kernel.values_of(spec, values.data());
    bool empty = false;
    for (std::size_t i = 0; i < values.size(); ++i) {
      empty = empty || values[i] < kernel.parameters[i].min;
    }
    if (!empty) return;
  }
  static_cast<void>(kernel.geometry_of(spec, gpu));
}

void queue(const ContextCore& core, const std::shared_ptr<const HostLaunch>& call,
           driver::CUstream stream) {
  const Current current(core, Stage::Launch);
  const driver::CUresult result = driver::emulated::launch_host_kernel(stream, call);
  if (result == driver::CUDA_SUCCESS) return;
  Error error = core.failure(Stage::Launch, {&row_of(&driver::Table::launch_host_func), result});
  error.kernel = call->name();
  throw error.refresh();
}

}  // namespace

HostLaunch::HostLaunch(const KernelDescription& kernel, const void* spec, const void* operands,
                       const HostVectors* vectors)
    : kernel_(kernel),
      spec_(kernel.copy_spec(spec)),
      operands_(kernel.copy_operands(operands)),
      vectors_(vectors) {
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    if (!is_memory(kernel.arguments[i].role) || !kernel.is_present_of(spec, i)) continue;
    const OperandUse use = kernel.use_of(spec, operands, i);
    memory_.push_back({use.memory.address, use.needs(), use.written});
  }
}

LaunchRecord Launcher::State::host_record(const KernelDescription& kernel) const {
  const bool function = host_target != nullptr && kernel.host_of != nullptr;
  LaunchRecord record;
  record.kernel = kernel.name;
  record.implementation = function ? host_target->name : kHostScalar;
  record.reason = function ? kVectors : host_target == nullptr ? kScalar : kNoFunction;
  record.cached = true;
  return record;
}

LaunchRecord Launcher::State::launch_host(const KernelDescription& kernel, const void* spec,
                                          const void* operands, const Stream& stream) const {
  core.alive(Stage::Launch);
  core.same(Stage::Launch, stream.core(), "the stream");
  refuse_empty(kernel, spec, gpu);
  Span span(trace, "launch", "runtime");
  span.argument("kernel", kernel.name);
  queue(core, host_launch(kernel, spec, operands), stream.handle());
  return host_record(kernel);
}

LaunchPlan Launcher::State::plan_host(const KernelDescription& kernel, const void* spec,
                                      const void* operands, const Stream& stream) const {
  refuse_empty(kernel, spec, gpu);
  // The plan may outlive the launcher.
  std::function<void(driver::CUstream)> again =
      [call = host_launch(kernel, spec, operands),
       owner = core.shared_from_this()](driver::CUstream on) { queue(*owner, call, on); };
  return LaunchPlan(
      Hidden<LaunchPlan::State>::make(std::move(again), core, host_record(kernel), stream));
}

std::shared_ptr<const HostLaunch> Launcher::State::host_launch(const KernelDescription& kernel,
                                                               const void* spec,
                                                               const void* operands) const {
  return std::make_shared<const HostLaunch>(
      kernel, spec, operands, host_target == nullptr ? nullptr : host_target->vectors);
}

}  // namespace ptxgen::inline v0
