// src/cli/commands/coverage_runs.hpp - launches whose coverage is recorded
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cli/args/run_options.hpp"
#include "coverage/coverage.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/kernels/description.hpp"
#include "ptxgen/ptx/target.hpp"
#include "ptxgen/runtime/device/device.hpp"

namespace ptxgen::cli {

/// Records what the launches of an emulated context execute while it lives.
class LaunchCoverage {
 public:
  /// `of`: the described kernel that is launched.
  LaunchCoverage(const Context& context, std::string of, std::string case_name);
  LaunchCoverage(const LaunchCoverage&) = delete;
  LaunchCoverage& operator=(const LaunchCoverage&) = delete;
  ~LaunchCoverage();

  /// After a synchronisation. Throws what recording has thrown.
  [[nodiscard]] coverage::Coverage take();

 private:
  static void report(void* user, const driver::emulated::LaunchReport& launch);
  void add(const driver::emulated::LaunchReport& launch);

  driver::CUcontext context_;
  std::string of_;
  std::string case_name_;
  std::mutex mutex_;
  coverage::Coverage coverage_;
  std::string failure_;
};

/// A buffer whose accesses are counted in cells: `NAME` or `NAME:ROWSxCOLUMNS`.
struct CellChoice {
  std::string buffer;
  std::uint64_t rows = 0;  ///< 0: as the argument's shape, or the kernel's parameters, say
  std::uint64_t columns = 0;
};
/// Throws `UsageError`.
[[nodiscard]] std::vector<CellChoice> cell_choices(const std::vector<std::string>& texts);

/// What a run has found besides its coverage.
struct RunNotes {
  std::vector<std::string> wrong;  ///< faults, findings of severity error, wrong results
  std::vector<std::string> notes;  ///< what is not counted, and why
};

/// The cells that a launch of a described kernel accesses, of all its operands in memory or of
/// those chosen; the counts of its code are 0. A launch that cannot be recorded has a note instead.
/// Throws `UsageError` for a choice that is no operand.
[[nodiscard]] coverage::Coverage kernel_cells(const std::string& device, const ptx::Gpu& gpu,
                                              const KernelDescription& kernel,
                                              std::span<const std::uint64_t> values,
                                              std::span<const CellChoice> choices,
                                              std::string_view case_name, std::uint64_t seed,
                                              const Settings& settings, RunNotes& notes);

/// One launch of a PTX file, with the cells of its buffers.
[[nodiscard]] coverage::Coverage ptx_coverage(const RunOptions& options, const ptx::Gpu& gpu,
                                              const std::string& text,
                                              std::span<const CellChoice> choices, RunNotes& notes);

}  // namespace ptxgen::cli
