// src/runtime/module/gates.cpp - the gates before a load
#include "runtime/module/gates.hpp"

#include <algorithm>
#include <iterator>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/support/error.hpp"
#include "support/excerpt.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

bool is_error(const Finding& finding) { return finding.severity == Severity::Error; }

using Gates = std::span<const gates::GateInfo>;

bool is_built(const ptx::Module& module) {
  return std::all_of(module.functions.begin(), module.functions.end(),
                     [](const ptx::Function& function) { return function.line == 0; });
}

std::vector<Finding> all_findings(Gates gates, const ptx::Module& module, const Trace& trace) {
  std::vector<Finding> findings;
  gates::GateOptions options;
  if (is_built(module)) options.origin = gates::CodeOrigin::Built;
  gates::GateRun run(module, options);
  for (const gates::GateInfo& gate : gates) {
    if (!gate.before_load) continue;
    const Span span(trace, gate.name, "gates");
    std::vector<Finding> found = run.run(gate);
    const bool stop = std::any_of(found.begin(), found.end(), is_error);
    findings.insert(findings.end(), std::make_move_iterator(found.begin()),
                    std::make_move_iterator(found.end()));
    if (stop) break;
  }
  return findings;
}

[[noreturn]] void refuse(const GateInput& gated, std::string_view text, const Finding& finding,
                         std::string all) {
  std::string message = finding.message;
  for (const std::string& detail : finding.details) {
    if (detail.starts_with("rule: ") || detail.starts_with("cure: ")) message += "; " + detail;
  }
  Error error(Stage::Verify, finding.rule, std::move(message));
  error.kernel = finding.kernel.empty() ? std::string(gated.kernel) : finding.kernel;
  error.target = gated.module.target;
  error.file = finding.file;
  error.line = finding.line;
  if (finding.line != 0) error.excerpt = excerpt_around(text, finding.line);
  error.site = finding.cpp;
  error.log = std::move(all);
  throw error.refresh();
}

std::string pass(Gates gates, const GateInput& gated, const Trace& trace) {
  std::vector<Finding> findings = all_findings(gates, gated.module, trace);
  if (findings.empty()) return {};
  // Run again with lines, which costs time only if there are findings.
  std::string printed;
  if (is_built(gated.module)) findings = all_findings(gates, with_lines(gated.module, printed), {});
  std::string all;
  std::string warnings;
  const Finding* error = nullptr;
  for (const Finding& finding : findings) {
    all += to_text(finding) + "\n";
    if (is_error(finding) && error == nullptr) error = &finding;
    if (finding.severity == Severity::Warning) warnings += to_text(finding) + "\n";
  }
  if (error != nullptr) {
    refuse(gated, printed.empty() ? gated.text : printed, *error, std::move(all));
  }
  return warnings;
}

}  // namespace

ptx::Module with_lines(const ptx::Module& module, std::string& text) {
  ptx::Module copy = module;
  ptx::LineMap lines;
  text = ptx::print(copy, &lines);
  for (std::size_t f = 0; f < copy.functions.size() && f < lines.lines.size(); ++f) {
    std::vector<ptx::Instruction>& body = copy.functions[f].body;
    for (std::size_t i = 0; i < body.size() && i < lines.lines[f].size(); ++i) {
      body[i].line = lines.lines[f][i];
    }
  }
  return copy;
}

std::string pass_gates(const GateInput& gated, const Trace& trace) {
  return pass(gates::all_gates(), gated, trace);
}

void refuse_illegal(const GateInput& gated) { (void)pass(gates::all_gates().first(1), gated, {}); }

void pass_gates(const GateInput& gated, const Log& log, const Trace& trace) {
  const std::string warnings = pass_gates(gated, trace);
  if (warnings.empty()) return;
  log.warn(format_text("{} is loaded with warnings:\n{}", gated.kernel, warnings));
}

}  // namespace ptxgen::inline v0
