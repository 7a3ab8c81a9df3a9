// src/driver/emulated/reported.hpp - findings of a launch in the caller's terms
#pragma once

#include <string>
#include <vector>

#include "driver/emulated/state.hpp"

namespace ptxgen::inline v0::driver::emulated {

/// "\n    in a launch of kernel 'NAME', grid (x,y,z), block (x,y,z)".
[[nodiscard]] std::string launch_text(const KernelLaunch& launch);

/// The findings of a launch with C++ calls, lines of the caller's file and statements. The first
/// that hardware, or the strict mode, would stop at is the launch's fault.
[[nodiscard]] std::vector<ReportedFinding> report_findings(const KernelLaunch& launch,
                                                           const emulator::Result& result);

/// The result of a launch with that finding as its fault: `fault_of`, or CUDA_ERROR_LAUNCH_FAILED
/// where hardware would go on and only the strict mode does not.
[[nodiscard]] CUresult fault_code(const ReportedFinding& finding) noexcept;

/// One entry for each cause, the fault's last.
[[nodiscard]] std::vector<FindingEntry> group_entries(const KernelLaunch& launch,
                                                      std::span<const ReportedFinding> findings);

}  // namespace ptxgen::inline v0::driver::emulated
