// src/check/analyze/performance_notes.cpp - notes on memory traffic and registers
#include <cmath>
#include <string>
#include <vector>

#include "analysis/facts.hpp"
#include "ptxgen/analysis/liveness.hpp"
#include "ptxgen/analysis/memory_report.hpp"
#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx/limits.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

using analysis::AccessPattern;
using analysis::CopyKind;
using analysis::MemoryAccess;
using analysis::MemoryReport;

namespace {

// Notes begin where half of the moved bytes are unused.
constexpr double kWasteful = 2;

std::string times(double value) {
  const auto tenths = static_cast<std::uint64_t>(std::llround(value * 10));
  return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : '.' + std::to_string(tenths % 10));
}

std::string apart(const MemoryAccess& access) {
  return access.lane_step.empty() ? ""
                                  : format_text("lanes are {} bytes apart, ", access.lane_step);
}

std::string shape(const MemoryReport& report) {
  const auto& size = report.block;
  return format_text("for blocks of {} x {} x {} threads{}", size[0], size[1], size[2],
                     (report.block_assumed ? ", assumed since the kernel requires none" : ""));
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

std::string what_is_needed(const MemoryAccess& access) {
  return format_text("{} sectors for {}, {} times what is needed", access.sectors.min,
                     count_text(access.bytes_wanted, "byte"), times(access.factor()));
}

std::string cure_of_sectors(const MemoryAccess& access) {
  if (access.space == ptx::Space::Local)
    return "index the array by what lanes agree on, or keep it in registers or shared memory";
  if (access.copy == CopyKind::Lanes)
    return "let threads with neighbouring %tid.x copy neighbouring elements; where they go in "
           "shared memory is free";
  return "let threads with neighbouring %tid.x access neighbouring elements, or bring a tile into "
         "shared memory first";
}

Finding uncoalesced(const ptx::Module& module, const MemoryReport& report,
                    const MemoryAccess& access) {
  Finding finding = note(module, report, access);
  finding.rule = "uncoalesced";
  finding.message = format_text("{} of {} is not coalesced: {}a warp moves {}", access.opcode,
                                access.address_text, apart(access), what_is_needed(access));
  finding.details = {
      "rule: memory is moved in sectors of 32 bytes, however few of them a warp needs",
      format_text("cure: {}", cure_of_sectors(access)), shape(report)};
  return finding;
}

Finding misaligned(const ptx::Module& module, const MemoryReport& report,
                   const MemoryAccess& access) {
  Finding finding = note(module, report, access);
  finding.rule = "uncoalesced";
  finding.message = format_text("{} of {} begins within a sector: a copy moves {}", access.opcode,
                                access.address_text, what_is_needed(access));
  finding.details = {
      "rule: memory is moved in sectors of 32 bytes, however few of them a copy needs",
      "cure: begin copies at multiples of 32 bytes, or copy more at once"};
  return finding;
}

Finding conflict(const ptx::Module& module, const MemoryReport& report,
                 const MemoryAccess& access) {
  Finding finding = note(module, report, access);
  finding.rule = "bank-conflict";
  finding.message = format_text(
      "{} of {} has bank conflicts: {}a warp takes {} wavefronts where {} would do", access.opcode,
      access.address_text, apart(access), access.wavefronts.min, access.ideal_wavefronts);
  finding.details = {
      "rule: shared memory has 32 banks of 4 bytes, and different words of one bank are served one "
      "after another",
      "cure: make rows one element longer, or exchange columns by the number of their row",
      shape(report)};
  return finding;
}

// Registers that a thread of the kernel may have, and the rule that limits them.
struct Allowance {
  std::uint32_t registers = 0;
  std::string words;
};

Allowance allowance(const ptx::Function& function, const ptx::Limits& limits) {
  Allowance min{
      limits.registers_per_thread,
      format_text("a thread has at most {}", count_text(limits.registers_per_thread, "register"))};
  for (const ptx::Directive& directive : function.directives) {
    const std::uint32_t value = directive.values[0];
    if (directive.kind != ptx::DirectiveKind::maxnreg || value == 0) continue;
    if (value < min.registers) {
      min = {value, format_text(".maxnreg allows a thread {}", count_text(value, "register"))};
    }
  }
  return min;
}

void add_pressure(std::vector<Finding>& findings, const ptx::Module& module,
                  const ptx::Function& function, std::string_view target) {
  analysis::Facts facts(module, function);
  const analysis::Liveness liveness(function, facts.cfg(), facts.index());
  const analysis::PressurePoint& peak = liveness.maximum();
  const Allowance allowed = allowance(function, ptx::limits(target));
  if (peak.statement == ptx::kNone || peak.pressure.words() <= allowed.registers) return;
  const ptx::Instruction& statement = function.body[peak.statement];
  Finding finding;
  finding.severity = Severity::Note;
  finding.rule = "register-pressure";
  finding.message =
      format_text("{} of 32 bits are alive at once here, where kernel '{}' needs most",
                  count_text(peak.pressure.words(), "register"), module.text(function.name));
  finding.file = module.file;
  finding.line = statement.line;
  finding.kernel = module.text(function.name);
  finding.cpp = module.site_of(statement);
  finding.details = {
      format_text("in: {}", ptx::print(module, function, statement)),
      format_text(
          "rule: {}; an assembler that finds no better order spills the rest to local memory",
          allowed.words),
      "cure: compute values nearer to where they are used, or work on fewer at once"};
  findings.push_back(std::move(finding));
}

}  // namespace

std::vector<Finding> performance_notes(const ptx::Module& module, const GateOptions& options) {
  std::vector<Finding> all;
  for (const ptx::Function& function : module.functions) {
    if (function.declaration) continue;
    const MemoryReport report = analysis::memory_report(module, function, {.block = options.block});
    for (const MemoryAccess& access : report.accesses) {
      if (access.pattern != AccessPattern::Strided) continue;
      if (access.copy == CopyKind::Bulk) {
        if (access.factor() >= kWasteful) all.push_back(misaligned(module, report, access));
      } else if (access.space == ptx::Space::Shared) {
        all.push_back(conflict(module, report, access));
      } else if (access.space != ptx::Space::Const) {
        if (access.factor() >= kWasteful) all.push_back(uncoalesced(module, report, access));
      }
    }
    if (!function.entry) continue;
    add_pressure(all, module, function,
                 options.target.empty() ? std::string_view(module.target) : options.target);
  }
  return all;
}

}  // namespace ptxgen::inline v0::gates
