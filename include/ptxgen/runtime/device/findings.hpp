// ptxgen/runtime/device/findings.hpp - findings of launches on the emulated device
#pragma once

#include <cstdint>
#include <string>

#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/ptx/finding.hpp"

namespace ptxgen::inline v0 {

/// One finding of one launch on the emulated device: a race, an uninitialised read, an access out
/// of bounds, ... Equal findings of a launch are one object with a count.
struct LaunchFinding {
  /// The launch's number (`LaunchRecord::launch`), unique in the process.
  std::uint64_t launch = 0;
  std::string kernel;
  Dim3 grid;   ///< of the launch, in blocks
  Dim3 block;  ///< of the launch, in threads
  /// Severity, rule and message; the C++ call that built the statement (`cpp`), or file and line of
  /// PTX that came from a file. The line is 0 for PTX generated in memory.
  Finding finding;
  std::string statement;  ///< the PTX statement itself
  Dim3 block_index{0, 0, 0};
  Dim3 thread_index{0, 0, 0};  ///< first thread that did it, in that block
  std::uint64_t count = 1;     ///< how often it happened in this launch
  bool fault = false;          ///< it stopped the kernel; the context is lost
  std::string text;            ///< the complete text, as in the log
};

/// Findings of a device since they were cleared.
struct FindingCounts {
  std::uint64_t errors = 0;
  std::uint64_t warnings = 0;
  std::uint64_t notes = 0;
  std::uint64_t dropped = 0;  ///< of these, not kept: beyond the first 1,000
  [[nodiscard]] std::uint64_t all() const noexcept { return errors + warnings + notes; }
};

}  // namespace ptxgen::inline v0
