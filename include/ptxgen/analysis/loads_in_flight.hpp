// ptxgen/analysis/loads_in_flight.hpp - loads that a thread issues before it waits
#pragma once

#include <cstdint>

#include "ptxgen/analysis/memory_report.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::analysis {

/// Loads from global memory that a thread has in flight.
struct LoadsInFlight {
  std::uint32_t loads = 0;
  std::uint64_t bytes = 0;               ///< of these loads
  std::uint32_t statement = ptx::kNone;  ///< the last of them
};

/// The most bytes that a thread loads before an instruction reads one of the loaded registers:
/// loads return in order, so this waits for that load and those before it. Within one basic block,
/// which an assembler may unroll further; without asynchronous copies. `report` is the function's.
[[nodiscard]] LoadsInFlight loads_in_flight(const ptx::Function& function,
                                            const MemoryReport& report);

}  // namespace ptxgen::inline v0::analysis
