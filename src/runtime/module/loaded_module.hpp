// src/runtime/module/loaded_module.hpp - a loaded module and its source
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/runtime/module/module.hpp"
#include "runtime/device/owned.hpp"

namespace ptxgen::inline v0 {

/// PTX text and, if known, its module and the lines of its statements.
struct PtxSource {
  std::string_view text;
  std::string_view file;
  const ptx::Module* module = nullptr;
  const ptx::LineMap* lines = nullptr;  ///< null: statements carry their own lines
};

/// Whether a load runs the gates, or the caller has run them.
enum class GateMode : std::uint8_t { Here, Done };

/// Module::load for use within the library.
struct CheckedModule {
  [[nodiscard]] static Module load(const Context& context, std::string_view ptx,
                                   const ModuleOptions& options, std::string_view file,
                                   GateMode gating = GateMode::Done);
  [[nodiscard]] static Module load(const Context& context, const ptx::Module& module,
                                   const ModuleOptions& options, GateMode gating = GateMode::Done);
};

/// Properties of a kernel that only the PTX has.
struct EntryFacts {
  std::string name;
  Signature signature;
  bool waits = false;  ///< has griddepcontrol.wait, in the kernel or in a function of the module
};

/// A kernel of a loaded module.
struct FunctionFacts {
  std::string name;
  driver::CUfunction handle = nullptr;
  FunctionResources resources;
  std::optional<EntryFacts>
      entry;  ///< none: loaded from an image, or from PTX that could not be parsed
  /// Dynamic shared memory that the function is allowed; only ever grows.
  mutable std::atomic<std::uint32_t> opted_in{0};
  mutable std::mutex opting_in;
};

/// Unloaded by the destructor.
struct LoadedModule {
  explicit LoadedModule(SharedCore of) noexcept : module(std::move(of)) {}
  [[nodiscard]] const ContextCore& core() const noexcept { return *module.core; }

  Owned<driver::CUmodule, Release::Module> module;
  std::string info_log;
  double microseconds = 0;
  std::vector<EntryFacts> entries;
  mutable std::mutex mutex;
  /// Functions requested so far; nodes of a map have stable addresses.
  mutable std::map<std::string, FunctionFacts, std::less<>> functions;
};

struct Module::State {
  std::shared_ptr<const LoadedModule> module;
};
struct Function::State {
  std::shared_ptr<const LoadedModule> module;
  const FunctionFacts* facts = nullptr;
};

/// Result of one run of the driver's JIT.
struct JitResult {
  FailedCall failed;
  std::string info;
  std::string error;
};

/// Runs the JIT, again if its logs do not fit. The context is current; `image` is zero-terminated
/// text or a binary image.
[[nodiscard]] JitResult run_jit(const ContextCore& core, const void* image,
                                const ModuleOptions& options, driver::CUmodule& handle);

/// Throws "wrong-target" or "ptx-too-new" for PTX that the JIT would certainly reject.
void check_before_jit(const ContextCore& core, const PtxSource& source);

/// The Error for PTX that the JIT rejected.
[[nodiscard]] Error jit_error(const ContextCore& core, const PtxSource& source, JitResult outcome);

/// Names the instruction that needs a newer PTX version than the driver's; sets the error's line,
/// kernel and site.
[[nodiscard]] std::string too_new(const ContextCore& core, const PtxSource& source, Error& error);

/// 1-based line of a statement of the source's module, 0 if unknown.
[[nodiscard]] std::uint32_t line_of(const PtxSource& source, const ptx::Function& function,
                                    const ptx::Instruction& statement);

/// Adds versions, excerpt and the path of the dumped PTX to an error.
[[nodiscard]] Error finished(const ContextCore& core, const PtxSource& source, Error error);

/// Writes the text to a file named after its hash. Returns the path, or the reason for a failure,
/// as a clause for a message.
[[nodiscard]] std::string dump_ptx(const std::string& folder, std::string_view text);

}  // namespace ptxgen::inline v0
