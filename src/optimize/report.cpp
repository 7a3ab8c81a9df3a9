// src/optimize/report.cpp - what the passes did, in words
#include <cstdio>

#include "ptxgen/optimize/pass.hpp"
#include "support/count.hpp"

namespace ptxgen::inline v0::optimize {

namespace {

void add_counts(std::string& text, const PassReport& pass) {
  for (const ReasonCount& count : pass.counts) {
    text += count.fired ? ", " : ", refused ";
    text += std::to_string(count.count) + " ";
    text += count.reason;
  }
}

void add_decision(std::string& text, const Decision& decision) {
  text += "    " + decision.kernel;
  if (decision.line != 0) text += ":" + std::to_string(decision.line);
  text += decision.fired ? ": " : ": refused: ";
  text += decision.message + " [" + std::string(decision.reason) + "]\n";
  if (decision.cpp.known()) {
    text += std::string("      built at ") + decision.cpp.file + ":" +
            std::to_string(decision.cpp.line) + "\n";
  }
}

}  // namespace

std::string to_text(const PipelineReport& report, const ptx::Module&) {
  std::string text;
  for (const PassReport& pass : report.passes) {
    text += std::string(pass.name) + ": " + (pass.changed ? "changed" : "nothing changed");
    add_counts(text, pass);
    if (pass.statements_before != pass.statements_after) {
      text += ", " + count_text(pass.statements_before, "statement") + " to " +
              std::to_string(pass.statements_after);
    }
    char time[32];
    std::snprintf(time, sizeof time, ", %.1f us\n", pass.microseconds);
    text += time;
    for (const Decision& decision : pass.decisions) add_decision(text, decision);
  }
  return text;
}

}  // namespace ptxgen::inline v0::optimize
