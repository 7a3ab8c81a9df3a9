// src/runtime/launch/launcher_state.hpp - what a Launcher keeps, and its typed launches
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
#include "runtime/launch/cublas.hpp"
#include "runtime/launch/launch_checks.hpp"
#include "runtime/launch/library_keys.hpp"
#include "runtime/launch/planned_gemv.hpp"
#include "runtime/launch/workspace.hpp"

namespace ptxgen::inline v0 {

/// Kernels whose launch keeps the limits of every device that the library knows, whatever the
/// shape: at most 2^24 blocks of 256 threads, 1024 bytes of shared memory. They are not checked
/// again.
template <class Spec>
inline constexpr bool kFitsAllDevices = false;
template <>
inline constexpr bool kFitsAllDevices<GemvCoalesced> = true;

/// Everything that decides what passes and gates leave of a module, as its key has it.
[[nodiscard]] std::uint64_t key_of_passes(const optimize::PassOptions& passes, bool gates);

/// A kernel on its way to a module: build -> passes -> gates -> print. launcher_pipeline.cpp.
struct Pipeline {
  const ptx::Target* target = nullptr;
  const optimize::PassOptions* passes = nullptr;
  bool gates = true;
  const Log* log = nullptr;
  const Trace* trace = nullptr;

  /// Throws what building and gates throw.
  [[nodiscard]] KernelText from_catalog(const CatalogEntry& kernel,
                                        std::span<const std::uint64_t> values) const;
  [[nodiscard]] KernelText from_plan(const GemvPlan& plan) const;
  /// A module that is there already.
  [[nodiscard]] KernelText from_module(const ptx::Module& module, std::string_view entry) const;

 private:
  void finish(KernelText& text) const;
  void run_passes(ptx::Module& module, std::string_view entry) const;
  template <class Work>
  void stage(StageTimes& stages, std::string_view name, const Work& work) const;
};

/// Operands of a GEMV that have been checked: addresses and factors.
struct GemvAddresses {
  std::uint64_t y = 0, a = 0, x = 0, bias = 0, residual = 0;
  float alpha = 1, beta = 0;
  bool constant_weights = false;
};

/// Whether the problem is y = A^T x of f32 with tight rows: what the baselines and cublasSgemv do.
[[nodiscard]] constexpr bool is_plain(const GemvProblem& p) noexcept {
  return p.layout == GemvLayout::T && p.weights == GemvType::f32 && p.x == GemvType::f32 &&
         p.y == GemvType::f32 && (p.lda == 0 || p.lda == p.n) && !p.scaled && !p.bias &&
         !p.residual;
}

/// Queues `y = x^T A` by cuBLAS; y, a, x in this order. k may be 0.
void gemv_by_blas(const ContextCore& core, const Cublas& library, driver::CUstream stream,
                  std::array<std::uint64_t, 3> yax, std::uint32_t k, std::uint32_t n);

/// "k = 5, n = 7"
[[nodiscard]] std::string shape_text(std::uint64_t k, std::uint64_t n);

inline void check_gemv(const DeviceSpan<f32>& y, const DeviceSpan<f32>& a, const DeviceSpan<f32>& x,
                       std::uint32_t k, std::uint32_t n) {
  check_buffers(
      "gemv", Overlap::None, [&] { return shape_text(k, n); }, BufferArgument::of("y", y, n),
      BufferArgument::of("a", a, std::uint64_t{k} * n), BufferArgument::of("x", x, k));
}
/// Sizes, null pointers, alignment of elements, overlap, and operands that the problem has not.
void check_gemv(const GemvProblem& problem, const GemvOperands& operands);

template <class T>
void check_vadd(const DeviceSpan<T>& c, const DeviceSpan<T>& a, const DeviceSpan<T>& b,
                std::uint32_t n) {
  check_buffers(
      VaddOf<T>::kName, Overlap::Same, [&] { return "n = " + std::to_string(n); },
      BufferArgument::of("c", c, n), BufferArgument::of("a", a, n), BufferArgument::of("b", b, n));
}

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
  [[nodiscard]] const ModuleKey& key_of(const Copy&) const noexcept { return keys.copy; }
  [[nodiscard]] const ModuleKey& key_of(const FmaRpt&) const noexcept { return keys.fma_rpt; }
  [[nodiscard]] const ModuleKey& key_of(const GemvCoalesced&) const noexcept {
    return keys.gemv_coalesced;
  }
  [[nodiscard]] const ModuleKey& key_of(const GemvStrided&) const noexcept {
    return keys.gemv_strided;
  }
  [[nodiscard]] const ModuleKey& key_of(const Vadd&) const noexcept { return keys.vadd; }
  [[nodiscard]] const ModuleKey& key_of(const VaddBf16&) const noexcept { return keys.vadd_bf16; }
  [[nodiscard]] const ModuleKey& key_of(const VaddF16&) const noexcept { return keys.vadd_f16; }
  template <class Spec>
  [[nodiscard]] ModuleKey key_with_values(const Spec& spec) const noexcept {
    ModuleKey key = key_of(spec);
    key.values = key_values(spec);
    return key;
  }

  /// The module of a kernel of the library. `cached` says whether it was in memory.
  template <class Spec>
  [[nodiscard]] CachedModule module_of(const Spec& spec, const Stream& stream, bool& cached) const {
    const ModuleKey key = key_with_values(spec);
    CachedModule found = cache.find(key);
    cached = static_cast<bool>(found);
    if (!cached) [[unlikely]] {
      return miss(key, Spec::kName, values_of(spec), stream);
    }
    return found;
  }
  /// All checked but the arguments.
  template <class Spec, class... A>
  LaunchRecord run(const Spec& spec, std::string_view implementation, std::string_view reason,
                   const Stream& stream, const A&... arguments) const {
    const LaunchGeometry geometry = spec.geometry();  // refuses what leaves nothing to launch
    bool cached = false;
    const CachedModule module = module_of(spec, stream, cached);
    const auto block = Spec::KernelType::pack(arguments...);
    if constexpr (kFitsAllDevices<Spec>) {
      launch_fitting(module.function(), stream, geometry, block.data(), block.size());
    } else {
      module.function().launch(stream, geometry, {block.data(), block.size()});
    }
    if (stream.is_borrowed()) [[unlikely]] {
      keep_if_captured(module, stream);
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
    // Written so by cuda.h; the driver only reads.
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

  /// The same, frozen. launch_plan.cpp.
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

  /// Values of the catalog's parameters, in its order.
  using CatalogValues = std::array<std::uint64_t, 2>;
  [[nodiscard]] static CatalogValues values_of(const Copy& spec) noexcept { return {spec.n}; }
  template <class T>
  [[nodiscard]] static CatalogValues values_of(const VaddOf<T>& spec) noexcept {
    return {spec.n};
  }
  [[nodiscard]] static CatalogValues values_of(const FmaRpt& spec) noexcept {
    return {spec.n, spec.k};
  }
  [[nodiscard]] static CatalogValues values_of(const GemvCoalesced& spec) noexcept {
    return {spec.k, spec.n};
  }
  [[nodiscard]] static CatalogValues values_of(const GemvStrided& spec) noexcept {
    return {spec.k, spec.n};
  }

  /// Makes a kernel of the library ready. Throws "capture-miss" if the stream is being captured.
  [[nodiscard]] CachedModule miss(const ModuleKey& key, std::string_view kernel,
                                  CatalogValues values, const Stream& stream) const;
  /// The module of a text; `stream` null: nobody is capturing.
  [[nodiscard]] CachedModule module_of(const ptx::Module& module, std::string_view entry,
                                       const Stream* stream, bool& cached) const;
  void refuse_capture(std::string_view kernel, const Stream& stream) const;
  /// A host that captures a stream of its own gets a graph that we do not see: what is launched
  /// into it stays loaded for the launcher's lifetime.
  void keep_if_captured(const CachedModule& module, const Stream& stream) const;
  void keep_if_captured(const Function& function, const Stream& stream) const;
  void remember_stages(std::string_view kernel, const CachedModule& module) const;

  /// What a request of `prepare` asks for; "gemv" is replaced by what serves it. Without a
  /// pipeline: cuBLAS.
  struct Wanted {
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
  [[nodiscard]] Wanted wanted(const KernelRequest& request) const;
  [[nodiscard]] Wanted wanted(const GemvProblem& problem) const;

  void prepare(std::span<const Wanted> wanted, PrepareProgress progress) const;

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
  /// Throws "bad-choice" for what the baselines and cuBLAS cannot do.
  void need_plain(const GemvProblem& problem) const;

  /// The plan of the choice for that problem with the alignments of these addresses.
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
  /// A plan of the caller's. Throws as `check(plan, target)`, "misaligned".
  [[nodiscard]] PlannedGemv given_plan(const GemvPlan& plan, const GemvAddresses& at) const;

  [[nodiscard]] CachedModule module_of(const PlannedGemv& planned, const Stream& stream,
                                       bool& cached) const;
  LaunchRecord launch(const PlannedGemv& planned, const GemvAddresses& at,
                      const Stream& stream) const;
  /// Whether it may begin while the kernel before it in the stream still runs.
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
  /// cuBLAS with a handle of this context, made on the first call. Throws "no-cublas" on the
  /// emulated device, "capture-miss" if it would have to be made during a capture.
  [[nodiscard]] const std::shared_ptr<const Cublas>& blas(const Stream& stream) const;
  /// The same where nothing captures.
  [[nodiscard]] const std::shared_ptr<const Cublas>& blas() const;
  void refuse_emulated_blas() const;
  /// `error`: why the planned kernel cannot be loaded. Returns if cuBLAS can serve in its place,
  /// else throws `error` with cuBLAS's as a further cause.
  void fall_back(const Error& error, const Stream& stream) const;

  mutable std::atomic<bool> fell_back{false};
  mutable PlannedGemvs plans;
  mutable Workspaces workspaces;

  mutable std::mutex kept_mutex;
  mutable std::map<driver::CUfunction, CachedModule> kept;
  mutable std::map<driver::CUfunction, Function> kept_functions;

  mutable std::mutex stages_mutex;
  mutable std::map<std::string, StageTimes, std::less<>> last_stages;

  mutable std::mutex blas_mutex;
  mutable std::shared_ptr<const Cublas> blas_owner;  ///< does not change once `blas_ready`
  mutable std::atomic<bool> blas_ready{false};

  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();
};

}  // namespace ptxgen::inline v0
