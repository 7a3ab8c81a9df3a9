// src/optimize/report.cpp - text of pass reports

#include "ptxgen/optimize/pass.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::optimize {

namespace {

void add_counts(std::string& text, const PassReport& pass) {
  for (const ReasonCount& count : pass.counts) {
    text += format_text(", {}{} {}", count.fired ? "" : "refused ", count.count, count.reason);
  }
}

void add_decision(std::string& text, const Decision& decision) {
  text += "    " + decision.kernel;
  if (decision.line != 0) text += format_text(":{}", decision.line);
  text += format_text(": {}{} [{}]\n", decision.fired ? "" : "refused: ", decision.message,
                      decision.reason);
  if (decision.cpp.known()) {
    text += format_text("      built at {}:{}\n", decision.cpp.file, decision.cpp.line);
  }
}

}  // namespace

std::string to_text(const PipelineReport& report, const ptx::Module&) {
  std::string text;
  for (const PassReport& pass : report.passes) {
    text += format_text("{}: {}", pass.name, pass.changed ? "changed" : "nothing changed");
    add_counts(text, pass);
    if (pass.statements_before != pass.statements_after) {
      text += format_text(", {} to {}", count_text(pass.statements_before, "statement"),
                          pass.statements_after);
    }
    text += format_text(", {:.1f} us\n", pass.microseconds);
    for (const Decision& decision : pass.decisions) add_decision(text, decision);
  }
  return text;
}

}  // namespace ptxgen::inline v0::optimize
