// ptxgen/runtime/module/module.hpp - loaded modules and their functions
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/runtime/launch/arguments.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/runtime/device/stream.hpp"

namespace ptxgen::inline v0 {

/// How a module is loaded. Every field but `gates` is part of the cache's key.
struct ModuleOptions {
  std::uint32_t max_registers = 0;  ///< a thread; 0: no limit
  std::uint32_t optimization = 4;   ///< 0 (quickest to compile) to 4
  bool line_info = false;           ///< keep `.loc` lines for profilers
  /// Neither the driver's own cache of compiled PTX is to be used (its key is the text, so a
  /// comment that is different each time is added to it) nor ours.
  bool cold = false;
  /// The gates that PTX passes before the driver sees it. Turning them off is logged. A launcher
  /// has its own switch and leaves this one alone.
  bool gates = true;
  friend bool operator==(const ModuleOptions&, const ModuleOptions&) = default;
};

/// What a loaded function uses. Bytes unless said otherwise.
struct FunctionResources {
  std::uint32_t registers = 0;      ///< 32-bit, a thread; on the emulator those that are declared
  std::uint32_t local = 0;          ///< a thread: stack and spills
  std::uint32_t static_shared = 0;  ///< a block
  std::uint32_t constant = 0;
  std::uint32_t max_threads = 0;     ///< a block can have
  std::uint32_t ptx_version = 0;     ///< 10 * major + minor
  std::uint32_t binary_version = 0;  ///< 90: sm_90
};

/// What a launch may ask for beyond its geometry, or instead of it.
struct LaunchOptions {
  Dim3 cluster{1, 1, 1};  ///< {1,1,1}: as the geometry says
  bool cooperative = false;
  /// Programmatic dependent launch. Only for a kernel that has `griddepcontrol.wait`: `Error`
  /// ("pdl-without-wait") otherwise.
  bool programmatic = false;
  friend bool operator==(const LaunchOptions&, const LaunchOptions&) = default;
};

class Function;
struct AlreadyGated;  // src/runtime: loads what has been through the gates

/// A module in a context. Unloaded when it and all its functions are gone.
///
/// Threads: const members from any thread at once.
class Module {
 public:
  /// Loads PTX text through the gates and the driver's JIT. `file` is its name in messages. What
  /// the gates only doubt is logged; text that our parser cannot read goes to the driver as it is,
  /// which is logged too.
  /// Throws `Error` (Stage::Verify) with the rule that a gate found broken, PTX line, C++ call and
  /// all findings in the log.
  /// Throws `Error` (Stage::Load), with the JIT's whole log, the PTX lines it complains about, the
  /// C++ calls that made them (where the overload knows them) and the path of the dumped PTX:
  /// - "rejected": the driver does not accept the PTX
  /// - "ptx-too-new": PTX version, what needs it, and the driver's newest
  /// - "wrong-target": the PTX is for a newer GPU
  /// - "driver-call": anything else the driver says
  [[nodiscard]] static Module load(const Context& context, std::string_view ptx,
                                   const ModuleOptions& options = {},
                                   std::string_view file = "<ptx>");
  /// The text of a built module; errors name the C++ calls that built the lines.
  [[nodiscard]] static Module load(const Context& context, const ptx::Module& module,
                                   const ModuleOptions& options = {});
  /// A cubin or another image that the driver takes. What only the PTX says, whether a kernel waits
  /// for its predecessor and how many bytes of arguments it has, is not checked then.
  [[nodiscard]] static Module load_image(const Context& context, std::span<const std::byte> image);
  /// The same where `source`, which the image was made from, is at hand: launches are checked as
  /// those of PTX. Neither runs the gates: whoever made the image has compiled already.
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
  /// What the JIT said when it accepted the module; whole.
  [[nodiscard]] std::string_view info_log() const noexcept;
  /// Microseconds that loading took.
  [[nodiscard]] double load_microseconds() const noexcept;
  [[nodiscard]] driver::CUmodule handle() const noexcept;

 private:
  friend class Function;
  friend struct AlreadyGated;
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
  /// Its parameters, as the PTX declares them; null if it was loaded from an image, or from PTX
  /// that only the driver can read.
  [[nodiscard]] const Signature* signature() const noexcept;
  /// Blocks of that many threads that fit a multiprocessor at once.
  [[nodiscard]] std::uint32_t blocks_per_multiprocessor(std::uint32_t threads,
                                                        std::uint32_t dynamic_shared = 0) const;

  /// Checks the launch against the limits of device and function. Throws `Error` (Stage::Launch):
  /// "launch-limits" naming value and limit, "pdl-without-wait", "not-supported" or
  /// "driver-too-old" for what device or driver do not have.
  void check(const LaunchGeometry& geometry, const LaunchOptions& options = {}) const;
  /// `check`, and opts in to large shared memory where static, dynamic and reserved together need
  /// it: afterwards `handle` can be launched so as often as one likes.
  void allow(const LaunchGeometry& geometry, const LaunchOptions& options = {}) const;
  /// For those who launch `handle` themselves: graphs of captures in progress keep the module
  /// loaded. `launch` does this itself.
  void keep_for_captures() const;
  /// Queues a launch. `arguments` is the parameter block, laid out as the kernel's signature says
  /// (Kernel<...>::pack). Throws as `check`, and `Error` (Stage::Launch): "arguments" (another
  /// number of bytes than the parameters have), "other-context", "driver-call", "context-lost".
  void launch(const Stream& stream, const LaunchGeometry& geometry,
              std::span<const std::byte> arguments, const LaunchOptions& options = {}) const;
  /// The argument block of a launch, each value checked against its parameter as `pack_arguments`
  /// says. Throws `Error` (Stage::Launch, "arguments"), also where there is no `signature`.
  [[nodiscard]] std::vector<std::byte> pack(std::span<const LaunchValue> arguments) const;

  [[nodiscard]] driver::CUfunction handle() const noexcept;
  [[nodiscard]] const ContextCore& core() const noexcept;

 private:
  friend class Module;
  struct State;
  explicit Function(Hidden<State> state);
  Hidden<State> state_;
};

/// A Function with the C++ signature of the Kernel it was loaded from: a launch with other argument
/// types does not compile.
template <class... Args>
class LoadedKernel {
 public:
  /// A function that was loaded from that kernel (`Launcher::load`).
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
