// src/runtime/launch/launcher_described.cpp - launches of described kernels
#include <array>

#include "ptxgen/kernels/describe.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/device/stream_owner.hpp"
#include "runtime/launch/launch_plan.hpp"
#include "runtime/launch/launcher_state.hpp"
#include "runtime/launch/tensor_maps.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kCallersChoice = "requested: the caller's plan";

/// The arguments of one launch, on the stack.
struct Block {
  alignas(16) std::array<std::byte, kMaxArgumentBytes> bytes;
  std::size_t size;
};

Block packed(const ContextCore& core, const Launchable& what, const void* operands,
             std::uint64_t workspace) {
  Block block;
  block.size = what.kernel->block_bytes;
  what.pack(what.spec, operands, workspace, block.bytes.data());
  if (!what.kernel->tensor_maps.empty()) {
    encode_tensor_maps(core, *what.kernel, block.bytes.data());
  }
  return block;
}

}  // namespace

Launchable Launcher::State::launchable(const KernelDescription& kernel, const void* spec) const {
  static_cast<void>(pipeline.target_for(kernel, spec));
  Launchable what;
  what.kernel = &kernel;
  what.spec = spec;
  what.pack = kernel.pack_of;
  what.geometry = kernel.geometry_of(spec, gpu);  // rejects an empty grid
  if (options.programmatic && pipeline.target->sm >= 90) what.geometry.programmatic = true;
  const KernelKey key = kernel.key_of(spec);
  ModuleKey module = base_key;
  module.kernel = {kernel.name_hash, reinterpret_cast<std::uintptr_t>(kernel.type)};
  module.values = key.values;
  module.plan = key.plan;
  what.key = hashed(module);
  if (kernel.workspace_of != nullptr) what.need = kernel.workspace_of(spec);
  if (kernel.implementation_of != nullptr) {
    what.implementation = kernel.implementation_of(spec);
    what.reason = kCallersChoice;
  }
  return what;
}

CachedModule Launcher::State::module_of(const Launchable& what, const Stream& stream,
                                        bool& cached) const {
  CachedModule found = cache.find(what.key);
  cached = static_cast<bool>(found);
  if (cached) [[likely]] {
    return found;
  }
  refuse_capture(what.kernel->name, stream);
  found = cache.get(what.key.key, options.module,
                    [&] { return pipeline.from_described(*what.kernel, what.spec); });
  stages.set(what.kernel->name, found);
  // Once per load.
  found.function().check(what.geometry);
  return found;
}

LaunchGeometry Launcher::State::geometry_of(const Launchable& what, const KernelDescription& called,
                                            const void* operands) const {
  LaunchGeometry geometry = what.geometry;
  geometry.programmatic = geometry.programmatic && table.launch_kernel_ex != nullptr &&
                          (called.may_start_early == nullptr || called.may_start_early(operands));
  return geometry;
}

LaunchRecord Launcher::State::launch(const Launchable& what, const KernelDescription& called,
                                     const void* operands, const Stream& stream) const {
  bool cached = false;
  const CachedModule module = module_of(what, stream, cached);
  std::uint64_t workspace = 0;
  if (!what.need.none()) {
    core.same(Stage::Launch, stream.core(), "the stream");
    workspace = stream.is_borrowed() || may_be_captured(stream)
                    ? workspaces.address(stream, what.need, may_be_captured(stream))
                    : StreamAccess::workspace(stream).address(core, what.need);
  }
  const Block block = packed(core, what, operands, workspace);
  const LaunchGeometry geometry = geometry_of(what, called, operands);
  if (what.fits && !geometry.programmatic) {
    launch_fitting(module.function(), stream, geometry, block.bytes.data(), block.size);
  } else {
    module.function().launch(stream, geometry, {block.bytes.data(), block.size});
  }
  if (stream.is_borrowed()) [[unlikely]] {
    captured_kernels.add_if_captured(module, stream);
  }
  return {what.kernel->name, what.implementation, what.reason, geometry, 1, cached, launched()};
}

LaunchPlan Launcher::State::plan(const Launchable& what, const KernelDescription& called,
                                 const void* operands, const Stream& stream) const {
  bool cached = false;
  CachedModule module = module_of(what, stream, cached);
  std::shared_ptr<const Workspace> workspace;
  std::uint64_t address = 0;
  if (!what.need.none()) {
    workspace = std::make_shared<const Workspace>(core, core.shared_from_this(), what.need);
    address = workspace->address(what.need);
  }
  const Block block = packed(core, what, operands, address);
  const LaunchGeometry geometry = geometry_of(what, called, operands);
  return freeze_block(std::move(module),
                      {what.kernel->name, what.implementation, what.reason, geometry, 1, cached},
                      {block.bytes.data(), block.size}, stream, std::move(workspace));
}

LaunchRecord Launcher::launch_described(const KernelDescription& kernel, const void* spec,
                                        const void* operands, const Stream& stream) const {
  kernel.check_of(spec, operands);
  return state_->launch(kernel, spec, operands, stream);
}

LaunchPlan Launcher::plan_described(const KernelDescription& kernel, const void* spec,
                                    const void* operands, const Stream& stream) const {
  kernel.check_of(spec, operands);
  return state_->plan(kernel, spec, operands, stream);
}

LaunchRecord Launcher::launch(const KernelCall& call, const Stream& stream) const {
  return launch_described(*call.kernel, call.kernel->make_spec(call.values).get(),
                          call.kernel->make_operands(call.operands).get(), stream);
}

LaunchPlan Launcher::plan(const KernelCall& call, const Stream& stream) const {
  return plan_described(*call.kernel, call.kernel->make_spec(call.values).get(),
                        call.kernel->make_operands(call.operands).get(), stream);
}

}  // namespace ptxgen::inline v0
