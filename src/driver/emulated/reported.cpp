// src/driver/emulated/reported.cpp - findings of a launch in the caller's terms
#include "driver/emulated/reported.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "driver/emulated/modules.hpp"
#include "emulator/report/report.hpp"
#include "ptxgen/ptx/printer.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

/// The statements of a module by the line of its text.
class Statements {
 public:
  explicit Statements(const ptx::Module& module) : module_(module) {
    for (const ptx::Function& function : module.functions) {
      for (const ptx::Instruction& statement : function.body) {
        if (statement.kind == ptx::StatementKind::Instruction) {
          by_line_.try_emplace(statement.line, Place{&function, &statement});
        }
      }
    }
  }
  /// Empty if the line has none.
  [[nodiscard]] std::string at(std::uint32_t line) const {
    const auto found = by_line_.find(line);
    if (line == 0 || found == by_line_.end()) return {};
    return ptx::print(module_, *found->second.function, *found->second.statement);
  }

 private:
  struct Place {
    const ptx::Function* function;
    const ptx::Instruction* statement;
  };
  const ptx::Module& module_;
  std::unordered_map<std::uint32_t, Place> by_line_;
};

using emulator::Origins;

FindingStatement statement_of(const Statements& statements, const Origins* origins,
                              std::uint32_t line) {
  FindingStatement result;
  result.ptx_line = line;
  result.text = statements.at(line);
  if (origins == nullptr) return result;
  const Origins::Place place = origins->at(line);
  result.cpp = place.cpp;
  if (!origins->file.empty()) result.line = place.line;
  return result;
}

/// How a text names the place, in the caller's terms where there are origins.
std::string own_place(const ReportedFinding& finding, const Origins* origins) {
  if (origins == nullptr) return {};  // file and line of the finding
  const std::string place = origins->text(finding.statement.ptx_line);
  return place.empty() ? "kernel '" + finding.found.finding.kernel + "'" : place;
}

std::string other_place(const ReportedFinding& finding, const Origins* origins) {
  if (origins == nullptr) return "line " + std::to_string(finding.other.ptx_line);
  return origins->text(finding.other.ptx_line);
}

std::string text_of(const KernelLaunch& launch, const ReportedFinding& finding,
                    const emulator::RunFinding& shown) {
  const ModuleNotes* const notes = launch.function->owner->notes.get();
  const Origins* const origins = notes == nullptr ? nullptr : &notes->origins;
  return emulator::to_text(shown, {own_place(finding, origins), finding.statement.text},
                           {other_place(finding, origins), finding.other.text}) +
         launch_text(launch);
}

ReportedFinding reported(const emulator::RunFinding& found, const Statements& statements,
                         const Origins* origins) {
  ReportedFinding result;
  result.found = found;
  result.statement = statement_of(statements, origins, found.finding.line);
  if (found.has_other) result.other = statement_of(statements, origins, found.other.line);
  if (origins == nullptr) return result;
  result.found.finding.cpp = result.statement.cpp;
  result.found.finding.file = origins->file;
  result.found.finding.line = result.statement.line;
  result.found.finding.other_line = result.found.other.line = result.other.line;
  return result;
}

/// What findings are grouped by: the caller's places as far as they are known.
emulator::RunFinding group_key(const ReportedFinding& finding) {
  emulator::RunFinding key = finding.found;
  if (key.finding.line == 0) key.finding.line = finding.statement.ptx_line;
  const SourceLocation& other = finding.other.cpp;
  if (!key.finding.other_source.known() && other.known()) {
    key.finding.other_source = {std::string(other.file), other.line, 0, {}};
  }
  return key;
}

/// "3 findings of this cause, at PTX lines 12, 15 and 18, 96 times in all".
std::string group_count(const FindingGroup& group, std::span<const ReportedFinding> findings) {
  std::vector<Finding> members;
  for (const ReportedFinding& finding : findings) members.push_back(finding.found.finding);
  const bool lines = std::ranges::all_of(
      group.members, [&](std::size_t member) { return members[member].line != 0; });
  return (lines ? more_of(group, members)
                : std::to_string(group.members.size()) + " findings of this cause") +
         ", " + std::to_string(group.count) + " times in all; this is the first";
}

std::string group_text(const KernelLaunch& launch, const FindingGroup& group,
                       std::span<const ReportedFinding> findings) {
  const ReportedFinding& example = findings[group.example];
  if (group.members.size() == 1) return example.text;
  emulator::RunFinding shown = example.found;
  shown.count = 1;  // the group's line counts
  auto& details = shown.finding.details;
  details.insert(details.begin(), group_count(group, findings));
  return text_of(launch, example, shown);
}

}  // namespace

std::string launch_text(const KernelLaunch& launch) {
  return "\n    in a launch of kernel '" + launch.function->kernel->name + "', grid " +
         emulator::to_text(launch.grid) + ", block " + emulator::to_text(launch.block);
}

CUresult fault_code(const ReportedFinding& finding) noexcept {
  const CUresult code = fault_of(finding.found.rule);
  return code == CUDA_SUCCESS ? CUDA_ERROR_LAUNCH_FAILED : code;
}

std::vector<ReportedFinding> report_findings(const KernelLaunch& launch,
                                             const emulator::Result& result) {
  std::vector<ReportedFinding> all;
  if (result.findings.empty()) return all;
  const CUmod_st& module = *launch.function->owner;
  const Statements statements(module.program.module());
  bool faulted = false;
  for (const emulator::RunFinding& found : result.findings) {
    ReportedFinding& created = all.emplace_back(
        reported(found, statements, module.notes ? &module.notes->origins : nullptr));
    // An access to mapped memory goes on, as on hardware.
    const bool passes = found.mapped && launch.options.mapped_pages;
    const bool strict = strict_faults() && found.finding.severity == Severity::Error;
    created.fault = !faulted && !passes && (strict || fault_of(found.rule) != CUDA_SUCCESS);
    faulted = faulted || created.fault;
    created.text = text_of(launch, created, created.found);
  }
  return all;
}

std::vector<FindingEntry> group_entries(const KernelLaunch& launch,
                                        std::span<const ReportedFinding> findings) {
  std::vector<emulator::RunFinding> keys;
  std::vector<std::size_t> numbers;  // of the keys
  std::vector<FindingEntry> entries;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (findings[i].fault) continue;
    keys.push_back(group_key(findings[i]));
    numbers.push_back(i);
  }
  for (FindingGroup& group : emulator::group_findings(keys)) {
    group.example = numbers[group.example];
    for (std::size_t& member : group.members) member = numbers[member];
    const std::string text = group_text(launch, group, findings);
    entries.push_back({std::move(group), text});
  }
  const auto fault = std::ranges::find_if(findings, &ReportedFinding::fault);
  if (fault != findings.end()) {
    const auto i = static_cast<std::size_t>(fault - findings.begin());
    entries.push_back({{i, {i}, fault->found.count}, fault->text});
  }
  return entries;
}

CUresult annotate(CUmodule module, ModuleNotes notes) {
  return guarded([&] {
    if (!living(module)) return CUDA_ERROR_INVALID_HANDLE;
    auto kept = std::make_shared<const ModuleNotes>(std::move(notes));
    const std::lock_guard memory(module->context->memory_mutex);
    emulator::set_origins(module->program, {kept, &kept->origins});
    module->notes.swap(kept);  // the old ones go after the lock
    return CUDA_SUCCESS;
  });
}

}  // namespace ptxgen::inline v0::driver::emulated
