// src/optimize/memory_notes.cpp - notes on accesses that move more than they need
#include "ptxgen/analysis/memory_report.hpp"
#include "ptxgen/optimize/gates.hpp"
#include "ptxgen/ptx/printer.hpp"

namespace ptxgen::inline v0::optimize {

namespace {

Finding note(const ptx::Module& module, const ptx::Function& function,
             const analysis::MemoryAccess& access) {
  const bool banks = access.space == ptx::Space::Shared;
  Finding finding;
  finding.severity = Severity::Note;
  finding.rule = banks ? "bank-conflict" : "uncoalesced";
  finding.message = "this access is " + analysis::verdict(access);
  finding.file = module.file;
  finding.line = access.line;
  finding.kernel = module.text(function.name);
  finding.cpp = access.cpp;
  finding.details = {
      "in: " + ptx::print(module, function, function.body[access.statement]),
      "address: " + access.address_text,
      banks ? "rule: shared memory has 32 banks of 4 bytes; lanes that meet in one bank at "
              "different words are served one after another"
            : "rule: memory moves in sectors of 32 bytes, and a warp's request takes every sector "
              "that one of its lanes touches",
      banks ? "cure: pad the rows of the array by one element"
            : "cure: let neighbouring lanes access neighbouring elements, through a tile in shared "
              "memory if need be"};
  return finding;
}

}  // namespace

std::vector<Finding> memory_notes(const ptx::Module& module, const GateOptions& options) {
  std::vector<Finding> findings;
  analysis::MemoryReportOptions how;
  how.block = options.block;
  for (const ptx::Function& function : module.functions) {
    if (!function.entry || function.declaration) continue;
    const analysis::MemoryReport report = analysis::memory_report(module, function, how);
    for (const analysis::MemoryAccess& access : report.accesses) {
      const bool shown = access.space == ptx::Space::Global || access.space == ptx::Space::Shared;
      if (access.pattern != analysis::AccessPattern::Strided || !shown) continue;
      findings.push_back(note(module, function, access));
    }
  }
  return findings;
}

}  // namespace ptxgen::inline v0::optimize
