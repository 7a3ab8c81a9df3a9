// ptxgen/emulator/report/profile.hpp - the counters of a launch as text
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/emulator/report/counters.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::emulator {

/// The lines of `ptx` after a margin with the counters of each line: executions by warps, average
/// active lanes, divergent executions, sectors and ideal sectors of global or local memory,
/// wavefronts and ideal wavefronts of shared memory. Columns that do not apply to a line are empty.
/// Begins with two header lines, ends with a newline. `ptx` is the loaded text.
[[nodiscard]] std::string annotate(std::string_view ptx, const Counters& counters);

/// The counters of the launch as a table, a line each; ends with a newline. Omits groups of memory
/// accesses that did not occur.
[[nodiscard]] std::string to_text(const Counters& counters);

/// The counters of one source line, summed over its PTX instructions (by `.loc`). Inlined code
/// counts for the calling line (see ptx::SourceMap::position).
struct SourceCounters {
  std::string file;
  std::uint32_t line = 0;               ///< 0: instructions without a source line
  std::uint32_t instructions = 0;       ///< PTX instructions
  std::uint64_t executions = 0;         ///< of these, by warps
  std::uint64_t thread_executions = 0;  ///< active lanes, whatever their guard
  std::uint64_t predicated_on = 0;
  std::uint64_t divergent = 0;
  MemoryCounters memory;
  SharedCounters shared;
  BulkCounters bulk;
  PeerCounters peer;
};

/// `counters.lines` by source line, ordered by file and line. `module` is the loaded one
/// (Program::module()).
[[nodiscard]] std::vector<SourceCounters> by_source(const Counters& counters,
                                                    const ptx::Module& module);

/// A table with a row for each source line: the columns of `annotate` and the position.
/// Ends with a newline; empty without lines.
[[nodiscard]] std::string to_text(std::span<const SourceCounters> lines);

}  // namespace ptxgen::inline v0::emulator
