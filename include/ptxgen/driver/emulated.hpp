// ptxgen/driver/emulated.hpp - the Driver API on the CPU emulator
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ptxgen/driver/table.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/emulator/report/groups.hpp"
#include "ptxgen/ptx/target.hpp"

/// A driver whose GPUs are emulated. It behaves as libcuda does: contexts are current per thread,
/// work is queued in streams and done by a thread of the context, a fault surfaces at the next
/// synchronising call and poisons the context. Like libcuda it keeps its state for the process;
/// no other module of the library does.
namespace ptxgen::inline v0::driver::emulated {

/// The emulated driver's functions; all of functions.def, none null. Callable from any thread.
[[nodiscard]] const Table& table() noexcept;

/// Adds a GPU to what cuDeviceGetCount counts and returns its ordinal; a GPU of the same name that
/// is there already is returned instead. The process starts without any; cuInit adds one "h200" if
/// there is none by then (the stand-in library adds what PTXGEN_EMULATED_GPU names before).
[[nodiscard]] int add_gpu(const ptx::Gpu& gpu);

/// The newest PTX version that modules may have, 10 * major + minor; newer ones get
/// CUDA_ERROR_UNSUPPORTED_PTX_VERSION. 90 at first. Also decides what cuDriverGetVersion says.
void set_newest_ptx(int version) noexcept;
[[nodiscard]] int newest_ptx() noexcept;

/// A statement that a finding names, in the terms of the loaded text and of the caller.
struct FindingStatement {
  std::uint32_t ptx_line = 0;  ///< in the text that was loaded, 0 if unknown
  SourceLocation cpp;          ///< the builder call, if known
  std::uint32_t line = 0;      ///< in the caller's own PTX, 0 if there is none
  std::string text;            ///< the PTX statement
};

/// A finding of a launch in the terms of its caller.
struct ReportedFinding {
  emulator::RunFinding found;  ///< file, lines and C++ call are the caller's, or unknown
  FindingStatement statement;
  FindingStatement other;  ///< of the other party
  std::string text;        ///< all of it, with the launch
  bool fault = false;      ///< the context is lost by it
};

/// Findings of a launch with one source line and cause (`group_findings`): one entry of the log.
struct FindingEntry {
  FindingGroup group;  ///< of `LaunchReport::findings`
  std::string text;    ///< of the example, with the count
};

/// One launch that has ended, or been stopped by a fault. The references live during the call only.
struct LaunchReport {
  std::string_view kernel;
  emulator::Dim3 grid;
  emulator::Dim3 block;
  const emulator::Result& result;
  CUresult fault = CUDA_SUCCESS;  ///< what the context was poisoned with, if it was
  std::uint64_t number = 0;  ///< as `last_launch` gave it; each launch of the process has another
  std::span<const ReportedFinding> findings = {};  ///< the result's, in their order
  std::span<const FindingEntry> entries = {};      ///< a fault is an entry of its own, the last
  /// The module that was loaded, whose lines are those of the counters. Not to be read if the host
  /// may unload it before the launch has ended.
  const ptx::Module* module = nullptr;
};

/// What launches of a context are checked for and how they are scheduled. Applies to work that is
/// queued later. Default: `default_options()`.
CUresult set_launch_options(CUcontext context, const emulator::Options& options);
/// All rules of emulator::RuleSet::defaults(), counters on, seed 0, no budget for the whole launch.
[[nodiscard]] emulator::Options default_options();

/// `report` is called after each launch by the context's own thread; calls of the driver are
/// answered with CUDA_ERROR_NOT_PERMITTED.
/// A null `report` ends that. Returns after a call in progress has ended.
CUresult observe_launches(CUcontext context, void (*report)(void* user, const LaunchReport& launch),
                          void* user);

/// The number of the last launch that this thread has queued, 0 before the first and after one that
/// was captured.
[[nodiscard]] std::uint64_t last_launch() noexcept;

/// The code with which hardware answers what a finding says (out-of-bounds: 700, misaligned: 716,
/// assert: 710, ...), or CUDA_SUCCESS where hardware would not notice.
[[nodiscard]] CUresult fault_of(emulator::Rule rule) noexcept;

}  // namespace ptxgen::inline v0::driver::emulated
