// src/ptx/finding.cpp - the text of a finding
#include "ptxgen/ptx/finding.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {
namespace {

// "half.hpp:20 in 'f(int)', called at a.cu:7"
std::string to_text(const std::vector<SourcePosition>& stack) {
  std::string text;
  for (const SourcePosition& position : stack) {
    if (!text.empty()) text += ", called at ";
    text += format_text("{}:{}", position.file, position.line);
    if (!position.function.empty()) text += format_text(" in '{}'", position.function);
  }
  return text;
}

}  // namespace

std::string_view to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::Error:
      return "error";
    case Severity::Warning:
      return "warning";
    case Severity::Note:
      return "note";
  }
  return "error";
}

std::string to_text(const Finding& finding) {
  std::string text = finding.file.empty() ? "<ptx>" : finding.file;
  if (finding.line != 0) text += format_text(":{}", finding.line);
  text += format_text(": {}: {} [{}]", to_string(finding.severity), finding.message, finding.rule);
  for (const std::string& detail : finding.details) text += "\n    " + detail;
  if (finding.cpp.known()) {
    text += format_text("\n    built at {}:{}", finding.cpp.file, finding.cpp.line);
  }
  if (!finding.source_file.empty()) {
    text += format_text("\n    source {}:{}", finding.source_file, finding.source_line);
  }
  if (!finding.inlined.empty()) text += "\n    inlined: " + to_text(finding.inlined);
  return text;
}

}  // namespace ptxgen::inline v0
