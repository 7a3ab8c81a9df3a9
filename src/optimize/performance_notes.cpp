// src/optimize/performance_notes.cpp - the gate performance_notes
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "analysis/facts.hpp"
#include "ptxgen/analysis/liveness.hpp"
#include "ptxgen/analysis/memory_report.hpp"
#include "ptxgen/optimize/gates.hpp"
#include "ptxgen/ptx/limits.hpp"

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

// The first value of a directive, 0 if there is none.
std::uint32_t value_of(const ptx::Function& function, ptx::DirectiveKind kind) {
  for (const ptx::Directive& one : function.directives) {
    if (one.kind == kind && one.count > 0) return one.values[0];
  }
  return 0;
}

// Registers that are live at once, against what a thread may have, and what a thread may have if
// as many threads are to fit on a multiprocessor as the kernel asks for, or as do at most.
void pressure(const ptx::Module& module, const ptx::Function& function, const GateOptions& options,
              std::vector<Finding>& all) {
  analysis::Facts facts(module, function, {.block = options.block});
  const analysis::Liveness liveness(function, facts.cfg(), facts.index());
  const analysis::PressurePoint& worst = liveness.maximum();
  if (worst.statement == ptx::kNone) return;
  const std::string_view target = options.target.empty() ? module.target : options.target;
  const ptx::Limits& limits = ptx::limits(target);
  const std::uint32_t words = worst.pressure.words();
  const std::uint32_t asked = value_of(function, ptx::DirectiveKind::maxnreg);
  const std::uint32_t most =
      asked != 0 ? std::min(asked, limits.registers_per_thread) : limits.registers_per_thread;
  const ptx::Instruction& statement = function.body[worst.statement];
  Finding finding;
  finding.severity = Severity::Note;
  finding.rule = "register-pressure";
  finding.file = module.file;
  finding.line = statement.line;
  finding.kernel = module.text(function.name);
  finding.cpp = module.site_of(statement);
  const std::string held = "'" + finding.kernel + "' holds values for " + std::to_string(words) +
                           " registers of 32 bits here";
  const std::string cure =
      "cure: let fewer values live across this place: smaller tiles, less "
      "unrolling, loads nearer to where they are used";
  const std::string caution = "as the PTX is written; ptxas may need fewer registers, or more";
  if (words > most) {
    finding.message = held + ", a thread has " + std::to_string(most);
    finding.details = {
        "rule: what does not fit is kept in local memory, which is as slow as global", cure,
        caution};
    all.push_back(std::move(finding));
    return;
  }
  const analysis::BlockBounds block = analysis::block_bounds(function, {.block = options.block});
  const std::uint32_t blocks = value_of(function, ptx::DirectiveKind::minnctapersm);
  std::uint64_t threads = limits.threads_per_sm;
  if (blocks != 0 && block.kind != analysis::BlockBounds::Kind::Unknown)
    threads = std::min<std::uint64_t>(
        threads, std::uint64_t{blocks} * block.size[0] * block.size[1] * block.size[2]);
  if (threads == 0 || words * threads <= limits.registers_per_sm) return;
  finding.message = held + ", so that " + std::to_string(limits.registers_per_sm / words) + " of " +
                    std::to_string(threads) + " threads fit on a multiprocessor of " +
                    std::string(target);
  finding.details = {"rule: a multiprocessor has " + std::to_string(limits.registers_per_sm) +
                         " registers for all its threads",
                     cure, caution};
  all.push_back(std::move(finding));
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
    if (function.entry) pressure(module, function, options, all);
  }
  return all;
}

}  // namespace ptxgen::inline v0::optimize
