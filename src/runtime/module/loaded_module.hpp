// src/runtime/module/loaded_module.hpp - a loaded module and what it came from
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/owners.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/runtime/module/module.hpp"

namespace ptxgen::inline v0 {

/// PTX text and, where they are known, the module it says, and the lines of its statements.
struct PtxSource {
  std::string_view text;
  std::string_view file;
  const ptx::Module* module = nullptr;
  const ptx::LineMap* lines = nullptr;  ///< null: statements carry their own lines
};

/// Whether a load runs the gates, or whoever asks for it has done so.
enum class Gating : std::uint8_t { Here, Done };

/// Module::load for the library's own rooms.
struct AlreadyGated {
  [[nodiscard]] static Module load(const Context& context, std::string_view ptx,
                                   const ModuleOptions& options, std::string_view file,
                                   Gating gating = Gating::Done);
  [[nodiscard]] static Module load(const Context& context, const ptx::Module& module,
                                   const ModuleOptions& options, Gating gating = Gating::Done);
};

/// What the PTX says of a kernel and the driver does not.
struct EntryFacts {
  std::string name;
  Signature signature;
  bool waits = false;  ///< has griddepcontrol.wait, itself or in a function of the module
};

/// A kernel of a loaded module.
struct FunctionFacts {
  std::string name;
  driver::CUfunction handle = nullptr;
  FunctionResources resources;
  std::optional<EntryFacts> entry;  ///< none: loaded from an image, or PTX that was not understood
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
  /// Those that were asked for; nodes of a map stay where they are.
  mutable std::map<std::string, FunctionFacts, std::less<>> functions;
};

struct Module::State {
  std::shared_ptr<const LoadedModule> module;
};
struct Function::State {
  std::shared_ptr<const LoadedModule> module;
  const FunctionFacts* facts = nullptr;
};

/// What one attempt of the driver's JIT left behind.
struct JitOutcome {
  FailedCall failed;
  std::string info;
  std::string error;
};

/// Runs the JIT until its logs fit. The context is current; `image` is text with a zero byte at its
/// end or a binary image.
[[nodiscard]] JitOutcome run_jit(const ContextCore& core, const void* image,
                                 const ModuleOptions& options, driver::CUmodule& handle);

/// Throws "wrong-target" or "ptx-too-new" for PTX of which that is certain before the JIT sees it.
void check_before_jit(const ContextCore& core, const PtxSource& source);

/// The Error for PTX that the JIT did not take.
[[nodiscard]] Error jit_error(const ContextCore& core, const PtxSource& source, JitOutcome outcome);

/// Names what needs more PTX than the driver compiles; sets the error's line, kernel and site.
[[nodiscard]] std::string too_new(const ContextCore& core, const PtxSource& source, Error& error);

/// 1-based line of a statement of the source's module, 0 if it is not known.
[[nodiscard]] std::uint32_t line_of(const PtxSource& source, const ptx::Function& function,
                                    const ptx::Instruction& statement);

/// Adds to an error about PTX: versions, excerpt, and where the PTX was left.
[[nodiscard]] Error finished(const ContextCore& core, const PtxSource& source, Error error);

/// Writes the text to a file of the folder whose name follows from the text; the path, or why there
/// is none, in words for the end of a message.
[[nodiscard]] std::string dump_ptx(const std::string& folder, std::string_view text);

}  // namespace ptxgen::inline v0
