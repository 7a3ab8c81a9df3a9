// src/runtime/launch/launch_plan.cpp - prepared launches
#include "runtime/launch/launch_plan.hpp"

#include <cstring>

#include "runtime/launch/launcher_state.hpp"

namespace ptxgen::inline v0 {

LaunchPlan::State::State(const Function& what_function, CachedModule of, const ContextCore& of_core,
                         const LaunchRecord& what, std::span<const std::byte> arguments,
                         const Stream& on, std::shared_ptr<const Workspace> memory)
    : core(of_core),
      owner(of_core.shared_from_this()),
      kernel(what_function),
      module(std::move(of)),
      workspace(std::move(memory)),
      stream(on.handle()),
      reason(what.reason),
      record(what),
      with_attributes(what.geometry.cluster != Dim3{} || what.geometry.programmatic ||
                      what.geometry.cooperative),
      call(of_core.table().launch_kernel),
      function(kernel->handle()),
      block((arguments.size() + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t)),
      block_bytes(arguments.size()) {
  core.same(Stage::Launch, on.core(), "the stream");
  record.reason = reason;
  kernel->allow(record.geometry);
  if (!arguments.empty()) std::memcpy(block.data(), arguments.data(), arguments.size());
  const auto tag = [](std::uintptr_t number) { return reinterpret_cast<void*>(number); };
  extra[0] = tag(driver::kLaunchParamBufferPointer);
  extra[1] = block.data();
  extra[2] = tag(driver::kLaunchParamBufferSize);
  extra[3] = &block_bytes;
  extra[4] = tag(driver::kLaunchParamEnd);
}

LaunchPlan::State::State(std::function<void(driver::CUstream)> queue, const ContextCore& of_core,
                         const LaunchRecord& what, const Stream& on)
    : core(of_core),
      owner(of_core.shared_from_this()),
      stream(on.handle()),
      reason(what.reason),
      record(what),
      routine(std::move(queue)) {
  core.same(Stage::Launch, on.core(), "the stream");
  record.reason = reason;
}

void LaunchPlan::State::launch(driver::CUstream on) const {
  Span span(core.trace(), "launch", "runtime");
  span.argument("kernel", record.kernel);
  core.alive(Stage::Launch);
  if (routine) [[unlikely]] {
    return routine(on);
  }
  const Current current(core, Stage::Launch);
  if (core.capturing()) [[unlikely]] {
    kernel->keep_for_captures();
    if (workspace != nullptr) core.keep_for_captures(workspace);
  }
  const LaunchGeometry& shape = record.geometry;
  const driver::CUresult result =
      with_attributes ? launch_with_attributes(on)
                      : call(function, shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x,
                             shape.block.y, shape.block.z, shape.dynamic_shared_bytes, on, nullptr,
                             const_cast<void**>(static_cast<void* const*>(extra)));
  if (result != driver::CUDA_SUCCESS) [[unlikely]] {
    Error error = core.failure(Stage::Launch, {&row_of(&driver::Table::launch_kernel), result});
    error.kernel = record.kernel;
    throw error.refresh();
  }
}

driver::CUresult LaunchPlan::State::launch_with_attributes(driver::CUstream on) const {
  const LaunchGeometry& shape = record.geometry;
  driver::CUlaunchAttribute attributes[3] = {};
  driver::CUlaunchConfig config{};
  config.gridDimX = shape.grid.x;
  config.gridDimY = shape.grid.y;
  config.gridDimZ = shape.grid.z;
  config.blockDimX = shape.block.x;
  config.blockDimY = shape.block.y;
  config.blockDimZ = shape.block.z;
  config.sharedMemBytes = shape.dynamic_shared_bytes;
  config.hStream = on;
  config.attrs = attributes;
  if (shape.cluster != Dim3{}) {
    driver::CUlaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = driver::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim.x = shape.cluster.x;
    cluster.value.clusterDim.y = shape.cluster.y;
    cluster.value.clusterDim.z = shape.cluster.z;
  }
  if (shape.programmatic) {
    driver::CUlaunchAttribute& programmatic = attributes[config.numAttrs++];
    programmatic.id = driver::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    programmatic.value.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cooperative) {
    driver::CUlaunchAttribute& cooperative = attributes[config.numAttrs++];
    cooperative.id = driver::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
  }
  return core.table().launch_kernel_ex(&config, function, nullptr,
                                       const_cast<void**>(static_cast<void* const*>(extra)));
}

LaunchPlan::LaunchPlan(Hidden<State> state) : state_(std::move(state)) {}
LaunchPlan::LaunchPlan(LaunchPlan&&) noexcept = default;
LaunchPlan& LaunchPlan::operator=(LaunchPlan&& other) noexcept {
  const LaunchPlan old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}
LaunchPlan::~LaunchPlan() = default;

void LaunchPlan::launch() const { state_->launch(state_->stream); }

void LaunchPlan::launch(const Stream& stream) const {
  state_->core.same(Stage::Launch, stream.core(), "the stream");
  state_->launch(stream.handle());
}

const LaunchRecord& LaunchPlan::record() const noexcept { return state_->record; }

LaunchPlan Launcher::State::freeze_block(CachedModule module, const LaunchRecord& record,
                                         std::span<const std::byte> block, const Stream& stream,
                                         std::shared_ptr<const Workspace> workspace) const {
  const Function function = module.function();
  return LaunchPlan(Hidden<LaunchPlan::State>::make(function, std::move(module), core, record,
                                                    block, stream, std::move(workspace)));
}

LaunchPlan Launcher::plan(const BuiltKernel& kernel, const LaunchGeometry& geometry,
                          std::span<const std::byte> arguments, const Stream& stream) const {
  check_block(kernel.name(), kernel.signature(), arguments);
  bool cached = false;
  CachedModule module = state_->module_of(kernel.module(), kernel.name(), &stream, cached);
  const LaunchRecord record{module.function().name(), {}, {}, geometry, 1, cached};
  return state_->freeze_block(std::move(module), record, arguments, stream);
}

LaunchPlan Launcher::plan(const Function& function, const LaunchGeometry& geometry,
                          std::span<const std::byte> arguments, const Stream& stream) const {
  if (const Signature* known = function.signature()) {
    check_block(function.name(), *known, arguments);
  }
  const LaunchRecord record{function.name(), {}, {}, geometry, 1, true};
  return LaunchPlan(Hidden<LaunchPlan::State>::make(function, CachedModule(), state_->core, record,
                                                    arguments, stream, nullptr));
}

}  // namespace ptxgen::inline v0
