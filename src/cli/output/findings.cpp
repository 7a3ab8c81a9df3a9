// src/cli/output/findings.cpp - findings as JSON and as an exit code
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"

namespace ptxgen::cli {

using nlohmann::json;

json to_json(const Finding& finding) {
  json cpp = nullptr;
  if (finding.cpp.known()) cpp = {{"file", finding.cpp.file}, {"line", finding.cpp.line}};
  json source = nullptr;
  if (!finding.source_file.empty()) {
    source = {{"file", finding.source_file}, {"line", finding.source_line}};
  }
  return {{"severity", to_string(finding.severity)},
          {"rule", finding.rule},
          {"message", finding.message},
          {"file", finding.file},
          {"line", finding.line},
          {"kernel", finding.kernel},
          {"cpp", cpp},
          {"source", source},
          {"other", finding.other_line == 0 ? json(nullptr) : json{{"line", finding.other_line}}},
          {"details", finding.details},
          {"count", 1}};
}

json to_json(const std::vector<Finding>& findings) {
  json list = json::array();
  for (const Finding& finding : findings) list.push_back(to_json(finding));
  return {{"findings", std::move(list)}};
}

ExitCode verdict(const std::vector<Finding>& findings, bool strict) {
  const bool bad = std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.severity == Severity::Error || (strict && finding.severity == Severity::Warning);
  });
  return bad ? kFound : kDone;
}

}  // namespace ptxgen::cli
