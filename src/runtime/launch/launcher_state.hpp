// src/runtime/launch/launcher_state.hpp - state of a Launcher and its typed launches
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
#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"
#include "runtime/device/core.hpp"
#include "runtime/device/workspace.hpp"
#include "runtime/launch/captured_kernels.hpp"
#include "runtime/launch/gemv_request.hpp"
#include "runtime/launch/kernel_pipeline.hpp"
#include "runtime/launch/launcher_blas.hpp"
#include "runtime/launch/library_keys.hpp"
#include "runtime/launch/planned_gemv.hpp"

namespace ptxgen::inline v0 {

/// Kernels whose launches are within the limits of every known device for any shape: at most 2^24
/// blocks of 256 threads, 1024 bytes of shared memory. Their launches are not checked.
template <class Spec>
inline constexpr bool kFitsAllDevices = false;
template <>
inline constexpr bool kFitsAllDevices<GemvCoalesced> = true;

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

struct Launcher::State {
  State(const Context& context, LauncherOptions options);

  const Context& context;
  const ContextCore& core;
  const driver::Table& table;
  const Trace& trace;
  const bool emulated;
  const LauncherOptions options;
  const GemvChoice choice;  ///< of the options, else of the settings
  const ptx::Gpu gpu;       ///< what plans are made for
  mutable ModuleCache cache;
  const Pipeline pipeline;
  mutable std::once_flag tuned_read;
  mutable std::unique_ptr<const GemvPlanSource>
      tuned;  ///< of the settings' folder, once it is read

  LibraryKeys keys;

  /// The module of a kernel of the library. `cached` says whether it was in memory.
  template <class Spec>
  [[nodiscard]] CachedModule module_of(const Spec& spec, const Stream& stream, bool& cached) const {
    const ModuleKey key = keys.of(spec);
    CachedModule found = cache.find(key);
    cached = static_cast<bool>(found);
    if (!cached) [[unlikely]] {
      return miss(key, Spec::kName, catalog_values(spec), stream);
    }
    return found;
  }
  /// Launches; the arguments have been checked.
  template <class Spec, class... A>
  LaunchRecord run(const Spec& spec, std::string_view implementation, std::string_view reason,
                   const Stream& stream, const A&... arguments) const {
    const LaunchGeometry geometry = spec.geometry();  // rejects an empty grid
    bool cached = false;
    const CachedModule module = module_of(spec, stream, cached);
    const auto block = Spec::KernelType::pack(arguments...);
    if constexpr (kFitsAllDevices<Spec>) {
      launch_fitting(module.function(), stream, geometry, block.data(), block.size());
    } else {
      module.function().launch(stream, geometry, {block.data(), block.size()});
    }
    if (stream.is_borrowed()) [[unlikely]] {
      captured_kernels.add_if_captured(module, stream);
    }
    return {Spec::kName, implementation, reason, geometry, 1, cached, launched()};
  }

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
    const Span span(trace, "launch", "runtime");
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

  /// The same as a LaunchPlan. launch_plan.cpp.
  template <class Spec, class... A>
  [[nodiscard]] LaunchPlan freeze(const Spec& spec, std::string_view implementation,
                                  std::string_view reason, const Stream& stream,
                                  const A&... arguments) const {
    const LaunchGeometry geometry = spec.geometry();
    bool cached = false;
    CachedModule module = module_of(spec, stream, cached);
    const auto block = Spec::KernelType::pack(arguments...);
    return freeze_block(std::move(module),
                        {Spec::kName, implementation, reason, geometry, 1, cached},
                        {block.data(), block.size()}, stream);
  }
  [[nodiscard]] LaunchPlan freeze_block(CachedModule module, const LaunchRecord& record,
                                        std::span<const std::byte> block, const Stream& stream,
                                        std::shared_ptr<const Workspace> workspace = nullptr) const;

  /// Loads a kernel of the library. Throws "capture-miss" if the stream is being captured.
  [[nodiscard]] CachedModule miss(const ModuleKey& key, std::string_view kernel,
                                  CatalogValues values, const Stream& stream) const;
  /// The module of a text; `stream` is null outside of launches.
  [[nodiscard]] CachedModule module_of(const ptx::Module& module, std::string_view entry,
                                       const Stream* stream, bool& cached) const;
  void refuse_capture(std::string_view kernel, const Stream& stream) const;

  /// A module that `prepare` loads. `pipeline` is null if cuBLAS serves the request.
  struct ModuleRequest {
    ModuleKey key;
    const CatalogEntry* kernel = nullptr;
    std::array<std::uint64_t, 6> values{};
    const GemvPlan* plan = nullptr;  ///< instead of kernel and values
    const Pipeline* pipeline = nullptr;
    [[nodiscard]] KernelText text() const {
      if (plan != nullptr) return pipeline->from_plan(*plan);
      return pipeline->from_catalog(*kernel, parameter_values(*kernel, values));
    }
  };
  /// A request for "gemv" becomes one for the implementation that serves it.
  [[nodiscard]] ModuleRequest module_request(const KernelRequest& request) const;
  [[nodiscard]] ModuleRequest module_request(const GemvProblem& problem) const;

  void prepare(std::span<const ModuleRequest> modules, PrepareProgress progress) const;

  // GEMV and its implementations. launcher_gemv.cpp, launcher_choice.cpp.
  LaunchRecord gemv(const GemvProblem& problem, const GemvAddresses& at,
                    const Stream& stream) const;
  [[nodiscard]] LaunchPlan freeze_gemv(const GemvProblem& problem, const GemvAddresses& at,
                                       const Stream& stream) const;
  /// Calls `on_plan(planned)`, `on_kernel(spec, implementation, reason)` or `on_blas(reason)`, as
  /// the choice says.
  template <class OnPlan, class OnKernel, class OnBlas>
  auto serve_gemv(const GemvProblem& problem, const GemvAddresses& at, const Stream& stream,
                  const OnPlan& on_plan, const OnKernel& on_kernel, const OnBlas& on_blas) const;
  /// Whether the choice is a plan.
  [[nodiscard]] bool plans_gemv() const noexcept;
  /// Throws "bad-choice" for problems that the baselines and cuBLAS do not support.
  void need_plain(const GemvProblem& problem) const;

  /// The plan for that problem with the alignments of these addresses.
  [[nodiscard]] const PlannedGemv& planned(const GemvProblem& problem,
                                           const GemvAddresses& at) const {
    const std::uint64_t y = at.y | at.bias | at.residual;
    const PlannedGemv* const found = plans.find(shape_of(problem, at.a, at.x, y));
    if (found == nullptr) [[unlikely]] {
      return choose_plan(normalised(problem, at.a, at.x, y));
    }
    return *found;
  }
  /// Throws what `check(problem)` throws, "empty-grid", "bad-choice".
  [[nodiscard]] const PlannedGemv& choose_plan(const GemvProblem& problem) const;
  /// The options' measured plans, else those of the folder that the settings name; null: none.
  [[nodiscard]] const GemvPlanSource* measured_plans() const;
  [[nodiscard]] std::unique_ptr<PlannedGemv> tuned_plan(const GemvPlanSource& source,
                                                        const GemvProblem& problem) const;
  [[nodiscard]] std::unique_ptr<PlannedGemv> ranked_plan(const GemvProblem& problem) const;
  /// A plan of the caller. Throws as `check(plan, target)`, "misaligned".
  [[nodiscard]] PlannedGemv caller_plan(const GemvPlan& plan, const GemvAddresses& at) const;

  [[nodiscard]] CachedModule module_of(const PlannedGemv& planned, const Stream& stream,
                                       bool& cached) const;
  LaunchRecord launch(const PlannedGemv& planned, const GemvAddresses& at,
                      const Stream& stream) const;
  /// Whether it may start while the previous kernel of the stream still runs.
  [[nodiscard]] bool starts_early(const PlannedGemv& planned,
                                  const GemvAddresses& at) const noexcept {
    return at.constant_weights && planned.plan.programmatic && table.launch_kernel_ex != nullptr;
  }
  [[nodiscard]] LaunchPlan freeze(const PlannedGemv& planned, const GemvAddresses& at,
                                  const Stream& stream) const;
  [[nodiscard]] LaunchPlan freeze_blas(std::shared_ptr<const Cublas> library,
                                       const LaunchRecord& record, std::array<std::uint64_t, 3> yax,
                                       std::uint32_t k, std::uint32_t n,
                                       const Stream& stream) const;
  /// cuBLAS for a launch into that stream. Throws "no-cublas" on the emulated device,
  /// "capture-miss" if the library would be opened during a capture.
  [[nodiscard]] const std::shared_ptr<const Cublas>& blas_for(const Stream& stream) const;
  /// Switches to cuBLAS after `error`, with which loading the planned kernel failed. Throws `error`
  /// with cuBLAS's error as a further cause if cuBLAS is not available.
  void fall_back(const Error& error, const Stream& stream) const;

  mutable std::atomic<bool> fell_back{false};
  mutable PlannedGemvs plans;
  mutable Workspaces workspaces;
  mutable CapturedKernels captured_kernels;
  mutable StageRecords stages;
  mutable LazyCublas blas;

  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() = default;
};

}  // namespace ptxgen::inline v0
