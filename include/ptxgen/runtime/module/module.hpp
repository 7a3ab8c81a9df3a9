// ptxgen/runtime/module/module.hpp - loaded modules and their functions
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/runtime/device/stream.hpp"
#include "ptxgen/runtime/module/arguments.hpp"

namespace ptxgen::inline v0 {

/// How a module is loaded. Every field but `gates` is part of the cache's key.
struct ModuleOptions {
  std::uint32_t max_registers = 0;  ///< a thread; 0: no limit
  std::uint32_t optimization = 4;   ///< 0 (quickest to compile) to 4
  bool line_info = false;           ///< keep `.loc` lines for profilers
  /// Bypass the module cache and the driver's own cache of compiled PTX. The driver's key is the
  /// text, so a different comment is added each time.
  bool cold = false;
  /// Whether gates check PTX before the driver gets it. Turning them off is logged. A launcher
  /// ignores this field and has its own switch.
  bool gates = true;
  friend bool operator==(const ModuleOptions&, const ModuleOptions&) = default;
};

/// Resources of a loaded function. Bytes unless stated otherwise.
struct FunctionResources {
  std::uint32_t registers = 0;      ///< 32-bit, per thread; on the emulator the declared ones
  std::uint32_t local = 0;          ///< per thread: stack and spills
  std::uint32_t static_shared = 0;  ///< per block
  std::uint32_t constant = 0;
  std::uint32_t max_threads = 0;     ///< maximum of a block
  std::uint32_t ptx_version = 0;     ///< 10 * major + minor
  std::uint32_t binary_version = 0;  ///< 90: sm_90
};

/// Launch attributes that add to or replace those of the geometry.
struct LaunchOptions {
  Dim3 cluster{1, 1, 1};  ///< {1,1,1}: that of the geometry
  bool cooperative = false;
  /// Programmatic dependent launch. Only for a kernel that has `griddepcontrol.wait`: `Error`
  /// ("pdl-without-wait") otherwise.
  bool programmatic = false;
  friend bool operator==(const LaunchOptions&, const LaunchOptions&) = default;
};

class Function;
struct CheckedModule;  // src/runtime: loads modules that the gates have checked

/// A module in a context. Unloaded when it and all its functions are gone.
///
/// Threads: const members from any thread at once.
class Module {
 public:
  /// Loads PTX text through the gates and the driver's JIT. `file` is its name in messages.
  /// Warnings of the gates are logged. Text that ptxgen's parser cannot read goes to the driver
  /// unchecked, which is logged too. Throws `Error` (Stage::Verify) with the violated rule, PTX
  /// line, C++ call and all findings in the log. Throws `Error` (Stage::Load) with the JIT's
  /// complete log, the PTX lines it names, the C++ calls that built them (for a built module) and
  /// the path of the dumped PTX:
  /// - "rejected": the driver does not accept the PTX
  /// - "ptx-too-new": PTX version, what needs it, and the driver's newest
  /// - "wrong-target": the PTX is for a newer GPU
  /// - "driver-call": any other error of the driver
  [[nodiscard]] static Module load(const Context& context, std::string_view ptx,
                                   const ModuleOptions& options = {},
                                   std::string_view file = "<ptx>");
  /// The text of a built module; errors name the C++ calls that built the lines.
  [[nodiscard]] static Module load(const Context& context, const ptx::Module& module,
                                   const ModuleOptions& options = {});
  /// Loads a cubin or another image that the driver accepts. Launches are then not checked for what
  /// only the PTX contains: `griddepcontrol.wait` and the size of the arguments.
  [[nodiscard]] static Module load_image(const Context& context, std::span<const std::byte> image);
  /// The same with `source`, from which the image was made: launches are checked as those of PTX.
  /// Neither overload runs the gates.
  [[nodiscard]] static Module load_image(const Context& context, std::span<const std::byte> image,
                                         const ptx::Module& source);

  Module(Module&&) noexcept;
  Module& operator=(Module&&) noexcept;
  ~Module();

  /// Throws `Error` (Stage::Load, "not-found").
  [[nodiscard]] Function function(std::string_view name) const;
  /// Address and bytes of a `.global` or `.const` variable. Throws `Error` (Stage::Load,
  /// "not-found").
  struct Variable {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Variable variable(std::string_view name) const;
  /// The JIT's complete log for the accepted module.
  [[nodiscard]] std::string_view info_log() const noexcept;
  /// Load time in microseconds.
  [[nodiscard]] double load_microseconds() const noexcept;
  [[nodiscard]] driver::CUmodule handle() const noexcept;

 private:
  friend class Function;
  friend struct CheckedModule;
  struct State;
  explicit Module(Hidden<State> state);
  Hidden<State> state_;
};

/// A kernel of a loaded module; keeps the module loaded.
///
/// Threads: const members from any thread at once.
class Function {
 public:
  Function(const Function& other);
  Function(Function&&) noexcept;
  Function& operator=(Function&&) noexcept;
  ~Function();

  [[nodiscard]] std::string_view name() const noexcept;
  [[nodiscard]] const FunctionResources& resources() const noexcept;
  /// Its parameters as declared in the PTX; null if it was loaded from an image or from PTX that
  /// ptxgen cannot parse.
  [[nodiscard]] const Signature* signature() const noexcept;
  /// Resident blocks of that many threads per multiprocessor.
  [[nodiscard]] std::uint32_t blocks_per_multiprocessor(std::uint32_t threads,
                                                        std::uint32_t dynamic_shared = 0) const;

  /// Checks the launch against the limits of device and function. Throws `Error` (Stage::Launch):
  /// "launch-limits" naming value and limit, "pdl-without-wait", "not-supported" by the device,
  /// "driver-too-old".
  void check(const LaunchGeometry& geometry, const LaunchOptions& options = {}) const;
  /// `check`, and opts in to large shared memory if static, dynamic and reserved together need it.
  /// Afterwards `handle` can be launched directly with this geometry.
  void allow(const LaunchGeometry& geometry, const LaunchOptions& options = {}) const;
  /// For callers that launch `handle` directly: graphs of captures in progress keep the module
  /// loaded. `launch` includes this.
  void keep_for_captures() const;
  /// Queues a launch. `arguments` is the parameter block in the layout of the kernel's signature
  /// (Kernel<...>::pack). Throws as `check`, and `Error` (Stage::Launch): "arguments" (the block's
  /// size differs from that of the parameters), "other-context", "driver-call", "context-lost".
  void launch(const Stream& stream, const LaunchGeometry& geometry,
              std::span<const std::byte> arguments, const LaunchOptions& options = {}) const;
  /// The argument block of a launch, each value checked against its parameter as by
  /// `pack_arguments`. Throws `Error` (Stage::Launch, "arguments"), also if there is no
  /// `signature`.
  [[nodiscard]] std::vector<std::byte> pack(std::span<const LaunchValue> arguments) const;

  [[nodiscard]] driver::CUfunction handle() const noexcept;
  [[nodiscard]] const ContextCore& core() const noexcept;

 private:
  friend class Module;
  struct State;
  explicit Function(Hidden<State> state);
  Hidden<State> state_;
};

/// A Function with the C++ signature of its Kernel: a launch with other argument types does not
/// compile.
template <class... Args>
class LoadedKernel {
 public:
  /// Wraps a function that was loaded from that kernel (`Launcher::load`).
  explicit LoadedKernel(Function loaded) noexcept : function_(static_cast<Function&&>(loaded)) {}
  LoadedKernel(const Context& context, const Kernel<Args...>& kernel,
               const ModuleOptions& options = {})
      : function_(Module::load(context, kernel.module(), options).function(kernel.name())) {}

  [[nodiscard]] const Function& function() const noexcept { return function_; }
  /// Arguments as `Launcher::launch` takes them.
  template <class... A>
  void launch(const Stream& stream, const LaunchGeometry& geometry, const A&... arguments) const {
    const auto block = detail::pack_launch(detail::TypeList<Args...>{}, arguments...);
    function_.launch(stream, geometry, {block.data(), block.size()});
  }

 private:
  Function function_;
};

}  // namespace ptxgen::inline v0
