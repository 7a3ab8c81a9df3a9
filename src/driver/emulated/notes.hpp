// src/driver/emulated/notes.hpp - what the library and the emulated driver tell each other
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/state/origins.hpp"
#include "ptxgen/driver/emulated.hpp"

/// PTX text is all that a driver gets. What is known beyond it goes beside: the text that is tested
/// is the text that ships.
namespace ptxgen::inline v0::driver::emulated {

/// Memory that an argument of a launch points into, as it was before the launch.
struct MemoryBefore {
  std::uint64_t address = 0;  ///< of the allocation
  std::vector<std::byte> bytes;
  /// Bytes that nothing had ever written: begin and end, ascending.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> unwritten;
};

/// A launch with a fault or an error, and all that repeats it. The references live during the call
/// only.
struct FailedLaunch {
  const LaunchReport& report;
  std::string_view ptx;  ///< the module
  emulator::Dim3 cluster;
  std::uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  std::span<const std::byte> arguments;  ///< the parameter block
  std::span<const MemoryBefore> memory;  ///< each allocation once, by address
};

/// Receives every launch of the modules that it was given to (`annotate`).
class LaunchListener {
 public:
  LaunchListener() = default;
  LaunchListener(const LaunchListener&) = delete;
  LaunchListener& operator=(const LaunchListener&) = delete;
  virtual ~LaunchListener() = default;
  /// Called by the context's own thread after the launch and before anything that waits for it
  /// goes on, without a lock. Calls of the driver are answered with CUDA_ERROR_NOT_PERMITTED.
  virtual void ended(const LaunchReport& launch) noexcept = 0;
  /// Whether `failed` is to be called, which costs a copy of the memory before each launch.
  [[nodiscard]] virtual bool keeps_failed() const noexcept { return false; }
  /// Called after `ended`, as it is, for a launch with a fault or an error.
  virtual void failed(const FailedLaunch& /*launch*/) noexcept {}
};

/// What a loader knows of a module and its PTX text does not say.
struct ModuleNotes {
  emulator::Origins origins;
  std::shared_ptr<LaunchListener> listener;  ///< may be null
};
/// Gives the notes to a module of this driver, for launches from now on. CUDA_ERROR_INVALID_HANDLE:
/// there is no such module.
CUresult annotate(CUmodule module, ModuleNotes notes);

/// Whether this thread is one of a context that is telling of a launch: what the driver logs in it
/// are findings, and calls of the driver are answered with CUDA_ERROR_NOT_PERMITTED.
[[nodiscard]] bool in_report() noexcept;

/// The fault that a context is poisoned with.
struct FaultNote {
  CUresult code = CUDA_SUCCESS;
  std::string kernel;
  ReportedFinding finding;  ///< `text` is set in any case
};
/// Code CUDA_SUCCESS: the context is healthy, or there is none.
[[nodiscard]] FaultNote fault_note(CUcontext context);

}  // namespace ptxgen::inline v0::driver::emulated
