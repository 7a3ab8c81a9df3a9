// src/runtime/launch/launcher_state.hpp - state of a Launcher
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"
#include "runtime/device/core.hpp"
#include "runtime/device/workspace.hpp"
#include "runtime/launch/captured_kernels.hpp"
#include "runtime/launch/kernel_pipeline.hpp"
#include "runtime/launch/served.hpp"

namespace ptxgen::inline v0 {

class HostLaunch;   // runtime/launch/host_launch.hpp
struct HostTarget;  // ptxgen/kernels/host.hpp

/// The stages of the last load of each kernel.
///
/// Threads: all members from any thread at once.
class StageRecords {
 public:
  void set(std::string_view kernel, const CachedModule& module) {
    const std::lock_guard lock(mutex_);
    stages_.insert_or_assign(std::string(kernel), module.record().stages);
  }
  [[nodiscard]] StageTimes of(std::string_view kernel) const {
    const std::lock_guard lock(mutex_);
    const auto found = stages_.find(kernel);
    return found == stages_.end() ? StageTimes{} : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, StageTimes, std::less<>> stages_;
};

/// A kernel that `prepare` loads: its spec, and operands at representative addresses.
struct PrepareRequest {
  const KernelDescription* kernel = nullptr;
  const void* spec = nullptr;
  const void* operands = nullptr;
};

struct Launcher::State {
  State(const Context& context, LauncherOptions options);

  const Context& context;
  const ContextCore& core;
  const driver::Table& table;
  const Trace& trace;
  const bool emulated;
  const LauncherOptions options;
  const bool on_host;                   ///< described kernels run as functions of the host
  const HostTarget* const host_target;  ///< the vectors that they use; null: none
  const ptx::Gpu gpu;                   ///< what choices are made for
  mutable ModuleCache cache;
  const Pipeline pipeline;
  const ModuleKey base_key;  ///< of any kernel of the library: without kernel, values and plan

  /// The number of the launch that this thread has just queued (LaunchRecord::launch).
  [[nodiscard]] std::uint64_t launched() const noexcept {
    return emulated ? driver::emulated::last_launch() : 0;
  }
  /// Function::launch without the checks of the geometry.
  void launch_fitting(const Function& function, const Stream& stream,
                      const LaunchGeometry& geometry, const std::byte* arguments,
                      std::size_t bytes) const {
    core.alive(Stage::Launch);
    if (&stream.core() != &core) [[unlikely]] {
      core.same(Stage::Launch, stream.core(), "the stream");
    }
    Span span(trace, "launch", "runtime");
    span.argument("kernel", function.name());
    const Current current(core, Stage::Launch);
    if (core.capturing()) [[unlikely]] {
      function.keep_for_captures();
    }
    // cuda.h takes non-const pointers; the driver only reads.
    void* extra[] = {reinterpret_cast<void*>(driver::kLaunchParamBufferPointer),
                     const_cast<std::byte*>(arguments),
                     reinterpret_cast<void*>(driver::kLaunchParamBufferSize), &bytes,
                     reinterpret_cast<void*>(driver::kLaunchParamEnd)};
    const driver::CUresult result =
        table.launch_kernel(function.handle(), geometry.grid.x, geometry.grid.y, geometry.grid.z,
                            geometry.block.x, geometry.block.y, geometry.block.z,
                            geometry.dynamic_shared_bytes, stream.handle(), nullptr, extra);
    if (result != driver::CUDA_SUCCESS) [[unlikely]] {
      throw_launch(function, result);
    }
  }
  [[noreturn]] void throw_launch(const Function& function, driver::CUresult result) const;

  // Described kernels. launcher_described.cpp.
  LaunchRecord launch(const KernelDescription& kernel, const void* spec, const void* operands,
                      const Stream& stream) const;
  [[nodiscard]] LaunchPlan plan(const KernelDescription& kernel, const void* spec,
                                const void* operands, const Stream& stream) const;
  /// What `launch` does for a kernel without a family.
  [[nodiscard]] Launchable launchable(const KernelDescription& kernel, const void* spec) const;
  [[nodiscard]] CachedModule module_of(const Launchable& what, const Stream& stream,
                                       bool& cached) const;
  LaunchRecord launch(const Launchable& what, const KernelDescription& called, const void* operands,
                      const Stream& stream) const;
  [[nodiscard]] LaunchPlan plan(const Launchable& what, const KernelDescription& called,
                                const void* operands, const Stream& stream) const;
  [[nodiscard]] LaunchGeometry geometry_of(const Launchable& what, const KernelDescription& called,
                                           const void* operands) const;

  // On a device of kind Host. launcher_host.cpp.
  LaunchRecord launch_host(const KernelDescription& kernel, const void* spec, const void* operands,
                           const Stream& stream) const;
  [[nodiscard]] LaunchPlan plan_host(const KernelDescription& kernel, const void* spec,
                                     const void* operands, const Stream& stream) const;
  [[nodiscard]] LaunchRecord host_record(const KernelDescription& kernel) const;
  [[nodiscard]] std::shared_ptr<const HostLaunch> host_launch(const KernelDescription& kernel,
                                                              const void* spec,
                                                              const void* operands) const;

  // Families. launcher_families.cpp.
  /// Calls `on_kernel(launchable)` or `on_routine(routine, reason)` as the family chooses.
  template <class OnKernel, class OnRoutine>
  auto serve(const KernelDescription& kernel, const void* spec, const void* operands,
             const Stream& stream, const OnKernel& on_kernel, const OnRoutine& on_routine) const;
  [[nodiscard]] const Served& served(const KernelDescription& kernel, const void* spec,
                                     const void* operands) const {
    const ChoiceKey shape = kernel.family->key(spec, operands);
    const Served* const found = calls.find(kernel.family, shape);
    if (found == nullptr) [[unlikely]] {
      return choose(kernel, spec, operands, shape);
    }
    return *found;
  }
  [[nodiscard]] const Served& choose(const KernelDescription& kernel, const void* spec,
                                     const void* operands, const ChoiceKey& shape) const;
  [[nodiscard]] FamilyState& family_state(const KernelDescription& kernel) const;
  /// Opens the routine for a launch into that stream. Throws "capture-miss" if its library would be
  /// opened during a capture.
  void open(Routine& routine, const Stream& stream) const;
  /// Switches to the family's routine after `error`, with which loading the chosen kernel failed.
  /// Throws `error` with the routine's error as a further cause if it is not available.
  void fall_back(FamilyState& family, const Error& error, const Stream& stream) const;

  [[nodiscard]] LaunchPlan freeze_block(CachedModule module, const LaunchRecord& record,
                                        std::span<const std::byte> block, const Stream& stream,
                                        std::shared_ptr<const Workspace> workspace = nullptr) const;

  /// The module of a text; `stream` is null outside of launches.
  [[nodiscard]] CachedModule module_of(const ptx::Module& module, std::string_view entry,
                                       const Stream* stream, bool& cached) const;
  void refuse_capture(std::string_view kernel, const Stream& stream) const;

  /// Modules that `prepare` loads, and the routines that it opens.
  void prepare(std::span<const PrepareRequest> kernels, PrepareProgress progress) const;

  mutable ServedCalls calls;
  mutable std::mutex families_mutex;
  mutable std::map<const KernelFamily*, FamilyState> families;  // entries stay in place
  mutable Workspaces workspaces;
  mutable CapturedKernels captured_kernels;
  mutable StageRecords stages;

  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() = default;
};

}  // namespace ptxgen::inline v0
