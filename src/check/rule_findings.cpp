// src/check/rule_findings.cpp - findings about statements of one function
#include "check/rule_findings.hpp"

#include <algorithm>
#include <utility>

#include "ptxgen/ptx/printer.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

Finding& RuleFindings::report(Severity severity, std::string_view rule, std::uint32_t statement,
                              std::string message, std::string_view reason, std::string_view cure) {
  const ptx::Instruction& s = at(statement);
  Finding finding;
  finding.severity = severity;
  finding.rule = rule;
  finding.message = std::move(message);
  finding.file = module().file;
  finding.line = s.line;
  finding.kernel = module().text(function().name);
  finding.cpp = module().site_of(s);
  finding.details.push_back(format_text("in: {}", ptx::print(module(), function(), s)));
  if (!reason.empty()) finding.details.push_back(format_text("rule: {}", reason));
  if (!cure.empty()) finding.details.push_back(format_text("cure: {}", cure));
  entries_.push_back({statement, std::move(finding)});
  return entries_.back().finding;
}

void RuleFindings::take(std::vector<Finding>& out) {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.statement < b.statement; });
  for (Entry& entry : entries_) out.push_back(std::move(entry.finding));
  entries_.clear();
}

std::string RuleFindings::place(std::uint32_t statement) const {
  const std::uint32_t line = at(statement).line;
  return line != 0 ? format_text("line {}", line) : format_text("statement {}", statement);
}

std::string RuleFindings::name(const ptx::Operand& operand) const {
  return ptx::name_of(module(), function(), operand.as_register());
}

}  // namespace ptxgen::inline v0::gates
