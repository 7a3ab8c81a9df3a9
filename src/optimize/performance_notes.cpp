// src/optimize/performance_notes.cpp - notes on memory traffic and registers
#include "analysis/facts.hpp"
#include "ptxgen/analysis/liveness.hpp"
#include "ptxgen/analysis/memory_report.hpp"
#include "ptxgen/optimize/gates.hpp"
#include "ptxgen/ptx/limits.hpp"
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

/// Registers that a thread of the kernel may have, and what says so.
struct Allowance {
  std::uint32_t registers = 0;
  std::string words;
};

Allowance allowance(const ptx::Function& function, const ptx::Limits& limits) {
  Allowance least{
      limits.registers_per_thread,
      "a thread has at most " + std::to_string(limits.registers_per_thread) + " registers"};
  for (const ptx::Directive& directive : function.directives) {
    const std::uint32_t value = directive.values[0];
    if (directive.kind != ptx::DirectiveKind::maxnreg || value == 0) continue;
    if (value < least.registers) {
      least = {value, ".maxnreg allows a thread " + std::to_string(value) + " registers"};
    }
  }
  return least;
}

void add_pressure(std::vector<Finding>& findings, const ptx::Module& module,
                  const ptx::Function& function, std::string_view target) {
  analysis::Facts facts(module, function);
  const analysis::Liveness liveness(function, facts.cfg(), facts.index());
  const analysis::PressurePoint& most = liveness.maximum();
  const Allowance allowed = allowance(function, ptx::limits(target));
  if (most.statement == ptx::kNone || most.pressure.words() <= allowed.registers) return;
  const ptx::Instruction& statement = function.body[most.statement];
  Finding finding;
  finding.severity = Severity::Note;
  finding.rule = "register-pressure";
  finding.message = std::to_string(most.pressure.words()) +
                    " registers of 32 bits are alive at once here, where kernel '" +
                    std::string(module.text(function.name)) + "' needs most";
  finding.file = module.file;
  finding.line = statement.line;
  finding.kernel = module.text(function.name);
  finding.cpp = module.site_of(statement);
  finding.details = {
      "in: " + ptx::print(module, function, statement),
      "rule: " + allowed.words +
          "; an assembler that finds no better order spills "
          "the rest to local memory",
      "cure: compute values nearer to where they are used, or work on fewer at once"};
  findings.push_back(std::move(finding));
}

}  // namespace

std::vector<Finding> performance_notes(const ptx::Module& module, const GateOptions& options) {
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
    add_pressure(findings, module, function,
                 options.target.empty() ? std::string_view(module.target) : options.target);
  }
  return findings;
}

}  // namespace ptxgen::inline v0::optimize
