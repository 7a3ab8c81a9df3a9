// tests/analysis/memory_runner.hpp - memory reports beside what the emulator counts
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ptxgen/analysis/memory_report.hpp"

namespace ptxgen::test {

/// A kernel `k(.param .u64 a, .param .u32 n, .param .u32 s)` with that body. Around it: registers
/// %p, %h, %r, %rd, %f, of which %rd0 is `a`, %r0 and %r1 %tid.x and .y, %r2 %ctaid.x, %r3 %ntid.x,
/// %r4 %laneid, %r5 `tile` (shared, 16 KiB), %r6 `own` (local), %r20 `n` and %r21 `s`; `counters`
/// in global and `table` in constant memory. The body begins in line 26.
[[nodiscard]] std::string kernel(std::string_view body, std::string_view directive);
/// The report of such a kernel, one verdict each line.
[[nodiscard]] std::string verdict_of(std::string_view body,
                                     std::string_view directive = ".reqntid 128, 1, 1",
                                     const analysis::MemoryReportOptions& options = {});

/// A launch of the only kernel of a text. Every 64-bit parameter is a buffer of its own.
struct MemoryRun {
  std::string ptx;
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{32, 1, 1};
  std::map<std::string, std::uint32_t> values;  ///< of 32-bit parameters; 0 for others
  std::uint64_t buffer_bytes = 1 << 16;
  std::uint32_t dynamic_shared_bytes = 0;
};

struct MemoryComparison {
  std::string differences;           ///< empty: equal in everything that is called exact
  std::vector<std::string> inexact;  ///< accesses that are not, with the reason
  std::size_t exact = 0;             ///< accesses compared
  std::size_t affine_inexact = 0;    ///< called affine by the report, and not exact
  std::uint64_t requests = 0;        ///< of those compared
  analysis::MemoryReport report;
};

/// Runs it on the emulator, and counts it by affine forms.
[[nodiscard]] MemoryComparison compare(const MemoryRun& run);

}  // namespace ptxgen::test
