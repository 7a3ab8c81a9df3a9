// src/runtime/gates.cpp - what a module passes before it is loaded
#include "runtime/gates.hpp"

#include <iterator>

#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/support/error.hpp"
#include "support/excerpt.hpp"

namespace ptxgen::inline v0 {

namespace {

// The gates, in the order in which they are passed. Each reads the module and says what it found.
std::vector<Finding> all_findings(const ptx::Module& module) {
  std::vector<Finding> findings;
  const auto gate = [&](std::vector<Finding> found) {
    findings.insert(findings.end(), std::make_move_iterator(found.begin()),
                    std::make_move_iterator(found.end()));
  };
  gate(ptx::verify(module));
  return findings;
}

[[noreturn]] void refuse(const ptx::Module& module, std::string_view kernel, const Finding& finding,
                         std::string all) {
  Error error(Stage::Verify, finding.rule, finding.message);
  error.kernel = finding.kernel.empty() ? std::string(kernel) : finding.kernel;
  error.target = module.target;
  error.file = finding.file;
  error.line = finding.line;
  if (finding.line != 0) error.excerpt = excerpt_around(ptx::print(module), finding.line);
  error.site = finding.cpp;
  error.log = std::move(all);
  throw error.refresh();
}

}  // namespace

GateReport pass_gates(const ptx::Module& module, std::string_view kernel) {
  GateReport report;
  std::string all;
  const Finding* error = nullptr;
  const std::vector<Finding> findings = all_findings(module);
  for (const Finding& finding : findings) {
    all += to_text(finding) + "\n";
    if (finding.severity == Severity::Error && error == nullptr) error = &finding;
    if (finding.severity == Severity::Warning) report.warnings += to_text(finding) + "\n";
  }
  if (error != nullptr) refuse(module, kernel, *error, std::move(all));
  return report;
}

}  // namespace ptxgen::inline v0
