// ptxgen/runtime/launch/launcher.hpp - from a kernel's spec and device memory to a launch
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/kernels/describe.hpp"
#include "ptxgen/kernels/gemv/operands.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/runtime/cache/module_cache.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/runtime/device/stream.hpp"
#include "ptxgen/runtime/module/arguments.hpp"
#include "ptxgen/runtime/module/module.hpp"
#include "ptxgen/support/trace.hpp"

namespace ptxgen::inline v0 {

/// Which GEMV serves `gemv` and `matmul`. The names of `to_string` are those of PTXGEN_GEMV and
/// `--impl`.
enum class GemvChoice : std::uint8_t {
  Auto,       ///< the plan for the problem and the device; cuBLAS if it cannot be loaded (logged)
  Direct,     ///< the best plan of that path (`GemvPath`)
  Async,      ///< the same
  Bulk,       ///< the same
  Coalesced,  ///< baseline, one thread per column: layout T, f32, only y = A^T x
  Strided,    ///< baseline, one warp per column: the same
  Cublas,     ///< cublasSgemv, loaded at run time: the same; GPU only
};
[[nodiscard]] std::string_view to_string(GemvChoice choice) noexcept;
/// Throws `Error` (Stage::Launch, "bad-choice") listing the names.
[[nodiscard]] GemvChoice gemv_choice(std::string_view name);
/// "auto, direct, ...": all names, in the order of the enumeration.
[[nodiscard]] std::string gemv_choice_names();

/// A kernel of the catalog with its parameter values in the catalog's order, those at the end at
/// their defaults; for `prepare`. A family, as "gemv", prepares what it would choose for operands
/// aligned to 16 bytes.
struct KernelRequest {
  std::string_view kernel;
  std::vector<std::uint64_t> values;
};

/// What a family chose. `spec` is a value of the kernel's type and lives as long as the launcher;
/// it is null for a kernel without a family.
struct ChosenKernel {
  const KernelDescription* kernel = nullptr;  ///< null: a routine of another library, or the host
  const void* spec = nullptr;
  std::string_view implementation;  ///< "direct", "cublas"
  std::string_view reason;
};

/// The shape of `matmul`.
struct MatmulShape {
  std::uint32_t m = 1;  ///< rows of c and a
  std::uint32_t k = 0;  ///< columns of a, rows of b
  std::uint32_t n = 0;  ///< columns of c and b
};

struct LauncherOptions {
  /// Auto leaves the choice to the settings (PTXGEN_GEMV).
  GemvChoice gemv = GemvChoice::Auto;
  /// Measured plans, used before the planner if the choice is Auto. Must outlive the launcher.
  /// Null: the plans that `ptxgen tune` wrote to the settings' folder (PTXGEN_TUNED; on the
  /// emulator only if it is set), read once.
  const GemvPlanSource* gemv_plans = nullptr;
  ModuleOptions module;
  /// Passes that run on a kernel before it is loaded; their decisions are logged at level debug.
  /// The list `default` leaves the choice to the settings (PTXGEN_PASSES). `passes.contract =
  /// false` keeps the roundings of the code.
  optimize::PassOptions passes;
  /// Whether gates check a kernel before it is loaded. Turning them off is logged.
  bool gates = true;
  /// Programmatic dependent launch of every described kernel, on sm_90 and newer: each waits for
  /// the kernel ahead of it in the stream at its start, so it can be launched before that has ended
  /// (`optimize::wait_for_previous_grid`). GEMVs load weights before that, see
  /// `GemvOperands::constant_weights`.
  bool programmatic = false;
  /// Kernels are built and chosen for it; the device must run its code. Null: the device's own.
  const ptx::Target* target = nullptr;
  /// The GEMV choice and where to search for cuBLAS.
  Settings settings = Settings::from_environment();
  /// The module cache. An empty folder and the mode ReadWrite are replaced by those of the
  /// settings.
  ModuleCacheOptions cache;
};

/// Description of a launch, for tests and logs. The texts live as long as the program; the reason
/// of a planned GEMV as long as the launcher, or the LaunchPlan whose record it is in.
struct LaunchRecord {
  std::string_view kernel;  ///< "gemv", "gemv_coalesced", "cublasSgemv"
  /// "direct", "async", "bulk", "coalesced", "strided", "cublas"; "rows" if matmul called one of
  /// them for each row; on the host "avx2" and the like, or "scalar"; empty for kernels with one
  /// implementation.
  std::string_view implementation;
  std::string_view reason;  ///< reason for the choice
  LaunchGeometry geometry;
  std::uint32_t launches = 1;  ///< more than one if matmul runs row by row
  bool cached = false;         ///< the module was in memory already
  /// The launch's number, for `Device::findings`; of several launches, the last one's. 0 on a GPU
  /// and for a captured launch.
  std::uint64_t launch = 0;
};

/// A prepared launch: arguments, geometry and stream are fixed and checked. `launch` takes no lock,
/// does no lookup and allocates nothing (except inside cuBLAS, if that was chosen). Keeps the
/// module loaded, and device memory for partial sums if the plan splits a sum; the caller keeps
/// other memory and the stream. Launches on several streams write the same output; the caller
/// orders them.
///
/// Threads: `launch` from any thread.
class LaunchPlan {
 public:
  LaunchPlan(LaunchPlan&&) noexcept;
  LaunchPlan& operator=(LaunchPlan&&) noexcept;
  ~LaunchPlan();

  /// Throws `Error` (Stage::Launch) as Function::launch.
  void launch() const;
  /// On another stream of the same context.
  void launch(const Stream& stream) const;
  [[nodiscard]] const LaunchRecord& record() const noexcept;

 private:
  friend class Launcher;
  struct State;
  explicit LaunchPlan(Hidden<State> state);
  Hidden<State> state_;
};

/// Launches the library's kernels: spec -> cache -> passes and gates -> load -> launch.
///
/// Every call checks its arguments against the kernel's signature and throws `Error`
/// (Stage::Launch) before anything is queued: "buffer-size" (a buffer is smaller than the shape
/// needs; names the parameter), "null-pointer", "misaligned", "aliasing" (y overlaps a or x),
/// "arguments" (an operand that the problem does not have), "bad-choice" (the chosen GEMV cannot
/// serve the problem), "empty-grid", "launch-limits", "capture-miss" (the stream is being captured
/// and the kernel is not loaded yet: `prepare` it first; the capture stays valid), "other-context"
/// (a stream of another context), "no-cublas", "cublas-failed". A kernel that is not in memory is
/// loaded first, which may throw what building, passes (Stage::Optimize), gates (Stage::Verify) and
/// Module::load throw.
///
/// On a device of kind Host described kernels are queued as functions of the host, with the same
/// checks: there is no module, GEMV choices and passes do not matter, and the record's
/// implementation is `DeviceInfo::host`, or "scalar" for a kernel without a function
/// (`KernelDescription::host_of`). Kernels of your own run on the emulator.
///
/// A graph keeps the modules launched during its capture loaded; if the host captures a borrowed
/// stream itself, the launcher keeps them loaded until it is destroyed.
///
/// A GEMV plan that splits sums needs device memory for partial sums. Each stream, each LaunchPlan
/// and each capture has its own, allocated by the first launch that needs it ("out-of-memory") and
/// kept as long as the stream, the LaunchPlan or the graph. A stream of the host
/// (`Stream::borrowed`) is identified by its handle: its work must be complete before the host
/// destroys it.
///
/// The cache identifies kernels by name and by the parameters that specialise their code.
///
/// Threads: all members from any thread at once. `context` must outlive the launcher and must not
/// be moved.
class Launcher {
 public:
  /// Throws `Error`: "bad-choice", and (Stage::Optimize) "unknown-pass".
  explicit Launcher(const Context& context, LauncherOptions options = {});
  Launcher(Launcher&&) noexcept;
  Launcher& operator=(Launcher&&) noexcept;
  ~Launcher();

  /// A described kernel (`Describe<K>`), of the library or of your own:
  ///     launcher.launch(Vadd{.n = n}, {.c = c, .a = a, .b = b}, stream);
  /// Operands are checked against the description. Workspace comes from the launcher. A family, as
  /// `GemvProblem`, chooses once per shape, types and alignments of the addresses.
  template <Described K>
  LaunchRecord launch(const K& kernel, const typename K::Operands& operands,
                      const Stream& stream) const {
    return launch_described(kDescription<K>, &kernel, &operands, stream);
  }
  template <Described K>
  [[nodiscard]] LaunchPlan plan(const K& kernel, const typename K::Operands& operands,
                                const Stream& stream) const {
    return plan_described(kDescription<K>, &kernel, &operands, stream);
  }
  /// The same for a kernel that is known at run time only.
  LaunchRecord launch(const KernelCall& call, const Stream& stream) const;
  [[nodiscard]] LaunchPlan plan(const KernelCall& call, const Stream& stream) const;
  /// What `launch` would launch for operands at addresses of these alignments; the memory is not
  /// accessed. A kernel without a family is its own choice.
  template <Described K>
  [[nodiscard]] ChosenKernel choose(const K& kernel,
                                    const typename K::Operands& operands = {}) const {
    return choose_described(kDescription<K>, &kernel, &operands);
  }
  [[nodiscard]] ChosenKernel choose(const KernelCall& call) const;

  /// `y[j] = sum over i of a[i*n + j] * x[i]`: a is `[k x n]` row-major, x has k elements, y n.
  /// k = 0 gives y = 0; n = 0 is refused. For any other GEMV launch a `GemvProblem`; for one plan
  /// whatever the family would choose, a `Gemv`.
  LaunchRecord gemv(DeviceSpan<f32> y, DeviceSpan<f32> a, DeviceSpan<f32> x, std::uint32_t k,
                    std::uint32_t n, const Stream& stream) const;
  /// The plan that serves that problem with the problem's alignments; nothing if the choice does
  /// not use plans (coalesced, strided, cublas).
  [[nodiscard]] std::optional<GemvPlan> gemv_plan(const GemvProblem& problem) const;
  /// `c[m x n] = a[m x k] b[k x n]`, all row-major f32: one row is `gemv(c, b, a, k, n)`, more are
  /// a `GemmProblem` in one launch; row by row only if the options ask for a GEMV, or for k = 0.
  LaunchRecord matmul(DeviceSpan<f32> c, DeviceSpan<f32> a, DeviceSpan<f32> b,
                      const MatmulShape& shape, const Stream& stream) const;

  /// A kernel of your own, through the same passes, gates and cache:
  ///     launcher.launch(saxpy, {.grid = {8}, .block = {128}}, stream, y, x, 2.0f, 1000u);
  /// For a `Ptr<T>` pass a `Buffer<T>`, `DeviceSpan<T>` or `DeviceAddress<T>`, for a scalar exactly
  /// its host type (float for f32, std::uint32_t for u32). Anything else does not compile, and the
  /// message names position and types. "misaligned" for an address between elements.
  ///
  /// The kernel's text is printed and hashed in each call; to launch often, `load` it once, or
  /// freeze a plan. The record's `kernel` lives as long as `kernel`.
  template <class... P, class... A>
  LaunchRecord launch(const Kernel<P...>& kernel, const LaunchGeometry& geometry,
                      const Stream& stream, const A&... arguments) const {
    const auto block = detail::pack_launch(detail::TypeList<P...>{}, arguments...);
    return launch(kernel, geometry, {block.data(), block.size()}, stream);
  }
  /// A loaded kernel: `launcher.load(kernel)`.
  template <class... P, class... A>
  LaunchRecord launch(const LoadedKernel<P...>& kernel, const LaunchGeometry& geometry,
                      const Stream& stream, const A&... arguments) const {
    const auto block = detail::pack_launch(detail::TypeList<P...>{}, arguments...);
    return launch(kernel.function(), geometry, {block.data(), block.size()}, stream);
  }
  /// A kernel whose signature is known at run time only: PTX of others, CUDA C++, a `BuiltKernel`.
  /// The same arguments, and structures for parameters that are arrays of bytes, are checked when
  /// they are passed: "arguments", naming position, parameter and both types.
  template <class... A>
  LaunchRecord launch(const Function& function, const LaunchGeometry& geometry,
                      const Stream& stream, const A&... arguments) const {
    const std::array<LaunchValue, sizeof...(A)> values = {LaunchValue(arguments)...};
    return launch(function, geometry, function.pack(values), stream);
  }
  template <class... A>
  LaunchRecord launch(const BuiltKernel& kernel, const LaunchGeometry& geometry,
                      const Stream& stream, const A&... arguments) const {
    const std::array<LaunchValue, sizeof...(A)> values = {LaunchValue(arguments)...};
    return launch(kernel, geometry, pack_arguments(kernel.name(), kernel.signature(), values),
                  stream);
  }
  /// The same, frozen.
  template <class... P, class... A>
  [[nodiscard]] LaunchPlan plan(const Kernel<P...>& kernel, const LaunchGeometry& geometry,
                                const Stream& stream, const A&... arguments) const {
    const auto block = detail::pack_launch(detail::TypeList<P...>{}, arguments...);
    return plan(kernel, geometry, {block.data(), block.size()}, stream);
  }
  template <class... P, class... A>
  [[nodiscard]] LaunchPlan plan(const LoadedKernel<P...>& kernel, const LaunchGeometry& geometry,
                                const Stream& stream, const A&... arguments) const {
    const auto block = detail::pack_launch(detail::TypeList<P...>{}, arguments...);
    return plan(kernel.function(), geometry, {block.data(), block.size()}, stream);
  }
  template <class... A>
  [[nodiscard]] LaunchPlan plan(const Function& function, const LaunchGeometry& geometry,
                                const Stream& stream, const A&... arguments) const {
    const std::array<LaunchValue, sizeof...(A)> values = {LaunchValue(arguments)...};
    return plan(function, geometry, function.pack(values), stream);
  }
  template <class... A>
  [[nodiscard]] LaunchPlan plan(const BuiltKernel& kernel, const LaunchGeometry& geometry,
                                const Stream& stream, const A&... arguments) const {
    const std::array<LaunchValue, sizeof...(A)> values = {LaunchValue(arguments)...};
    return plan(kernel, geometry, pack_arguments(kernel.name(), kernel.signature(), values),
                stream);
  }

  /// The same with the argument block laid out by the caller (`Kernel<...>::pack`): "arguments" if
  /// it has another size than the signature says, "misaligned" for a pointer between elements.
  LaunchRecord launch(const BuiltKernel& kernel, const LaunchGeometry& geometry,
                      std::span<const std::byte> arguments, const Stream& stream,
                      const LaunchOptions& options = {}) const;
  LaunchRecord launch(const Function& function, const LaunchGeometry& geometry,
                      std::span<const std::byte> arguments, const Stream& stream,
                      const LaunchOptions& options = {}) const;
  [[nodiscard]] LaunchPlan plan(const BuiltKernel& kernel, const LaunchGeometry& geometry,
                                std::span<const std::byte> arguments, const Stream& stream) const;
  [[nodiscard]] LaunchPlan plan(const Function& function, const LaunchGeometry& geometry,
                                std::span<const std::byte> arguments, const Stream& stream) const;

  /// Loads a user-defined kernel. Later launches need no text, hash or lookup.
  template <class... P>
  [[nodiscard]] LoadedKernel<P...> load(const Kernel<P...>& kernel) const {
    return LoadedKernel<P...>(load(kernel.module(), kernel.name()));
  }
  /// Loads a function of any module (compile_cuda, a file) through the same passes, gates and
  /// cache. `entry` empty: its only kernel. Also throws what `parse` throws.
  [[nodiscard]] Function load(const ptx::Module& module, std::string_view entry = {}) const;
  [[nodiscard]] Function load(std::string_view ptx, std::string_view entry = {},
                              std::string_view file = "<ptx>") const;

  /// Builds and loads kernels ahead of time, in parallel; launches nothing. Throws the first
  /// `Error` after all have been tried: "no-kernel", "bad-parameter", or what building and loading
  /// throw.
  void prepare(std::span<const KernelRequest> kernels, PrepareProgress progress = {}) const;
  /// The same for described kernels; `operands` are at addresses of the alignments to prepare for,
  /// one for each kernel.
  template <Described K>
  void prepare(std::span<const K> kernels, std::span<const typename K::Operands> operands,
               PrepareProgress progress = {}) const {
    std::vector<const void*> specs;
    std::vector<const void*> all;
    for (const K& kernel : kernels) specs.push_back(&kernel);
    for (const auto& one : operands) all.push_back(&one);
    prepare_described(kDescription<K>, specs, all, progress);
  }
  /// The kernels that serve these problems with the problems' alignments.
  void prepare(std::span<const GemvProblem> problems, PrepareProgress progress = {}) const;

  /// The GEMV choice in effect: of the options, else of the settings.
  [[nodiscard]] GemvChoice gemv_choice() const noexcept;
  /// The stages of the kernel's last miss ("build", "passes", "gates", "print", then the cache's),
  /// for `--json`; empty if it never missed.
  [[nodiscard]] StageTimes stages(std::string_view kernel) const;
  [[nodiscard]] const ModuleCache& cache() const noexcept;
  [[nodiscard]] ModuleCache& cache() noexcept;

 private:
  LaunchRecord launch_described(const KernelDescription& kernel, const void* spec,
                                const void* operands, const Stream& stream) const;
  [[nodiscard]] LaunchPlan plan_described(const KernelDescription& kernel, const void* spec,
                                          const void* operands, const Stream& stream) const;
  [[nodiscard]] ChosenKernel choose_described(const KernelDescription& kernel, const void* spec,
                                              const void* operands) const;
  void prepare_described(const KernelDescription& kernel, std::span<const void* const> specs,
                         std::span<const void* const> operands, PrepareProgress progress) const;

  struct State;
  Hidden<State> state_;
};

}  // namespace ptxgen::inline v0
