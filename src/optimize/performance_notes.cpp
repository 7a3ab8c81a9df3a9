// src/optimize/performance_notes.cpp - the gate performance_notes
#include <cmath>
#include <string>
#include <vector>

#include "ptxgen/analysis/memory_report.hpp"
#include "ptxgen/optimize/gates.hpp"

namespace ptxgen::inline v0::optimize {

using analysis::AccessPattern;
using analysis::MemoryAccess;
using analysis::MemoryReport;

namespace {

// From here on a note is worth a reader's time: half of what is moved is not wanted.
constexpr double kWasteful = 2;

std::string times(double value) {
  const auto tenths = static_cast<std::uint64_t>(std::llround(value * 10));
  return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : '.' + std::to_string(tenths % 10));
}

std::string apart(const MemoryAccess& access) {
  return access.lane_step.empty() ? "" : "lanes are " + access.lane_step + " bytes apart, ";
}

std::string shape(const MemoryReport& report) {
  const auto& size = report.block;
  return "for blocks of " + std::to_string(size[0]) + " x " + std::to_string(size[1]) + " x " +
         std::to_string(size[2]) + " threads" +
         (report.block_assumed ? ", assumed since the kernel requires none" : "");
}

Finding note(const ptx::Module& module, const MemoryReport& report, const MemoryAccess& access) {
  Finding finding;
  finding.severity = Severity::Note;
  finding.file = module.file;
  finding.line = access.line;
  finding.kernel = report.function;
  finding.cpp = access.cpp;
  return finding;
}

Finding uncoalesced(const ptx::Module& module, const MemoryReport& report,
                    const MemoryAccess& access) {
  Finding finding = note(module, report, access);
  finding.rule = "uncoalesced";
  finding.message = access.opcode + " of " + access.address_text +
                    " is not coalesced: " + apart(access) + "a warp moves " +
                    std::to_string(access.sectors.least) + " sectors for " +
                    std::to_string(access.bytes_wanted) + " bytes, " + times(access.factor()) +
                    " times what is needed";
  finding.details = {
      "rule: memory is moved in sectors of 32 bytes, however few of them a warp wants",
      access.space == ptx::Space::Local
          ? "cure: index the array by what lanes agree on, or keep it in registers or shared memory"
          : "cure: let threads with neighbouring %tid.x access neighbouring elements, or bring a "
            "tile into shared memory first",
      shape(report)};
  return finding;
}

Finding conflict(const ptx::Module& module, const MemoryReport& report,
                 const MemoryAccess& access) {
  Finding finding = note(module, report, access);
  finding.rule = "bank-conflict";
  finding.message = access.opcode + " of " + access.address_text +
                    " has bank conflicts: " + apart(access) + "a warp takes " +
                    std::to_string(access.wavefronts.least) + " wavefronts where " +
                    std::to_string(access.ideal_wavefronts) + " would do";
  finding.details = {
      "rule: shared memory has 32 banks of 4 bytes, and different words of one bank are served one "
      "after another",
      "cure: make rows one element longer, or exchange columns by the number of their row",
      shape(report)};
  return finding;
}

}  // namespace

std::vector<Finding> performance_notes(const ptx::Module& module, const GateOptions& options) {
  std::vector<Finding> all;
  for (const ptx::Function& function : module.functions) {
    if (function.declaration) continue;
    const MemoryReport report = analysis::memory_report(module, function, {.block = options.block});
    for (const MemoryAccess& access : report.accesses) {
      if (access.pattern != AccessPattern::Strided) continue;
      if (access.space == ptx::Space::Shared) {
        all.push_back(conflict(module, report, access));
      } else if (access.space != ptx::Space::Const) {
        if (access.factor() >= kWasteful) all.push_back(uncoalesced(module, report, access));
      }
    }
  }
  return all;
}

}  // namespace ptxgen::inline v0::optimize
