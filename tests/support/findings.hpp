// tests/support/findings.hpp - findings as text
#pragma once

#include <string>
#include <vector>

#include "ptxgen/ptx/finding.hpp"

namespace ptxgen::test {

/// A line for each.
inline std::string findings_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += to_text(finding) + "\n";
  return text;
}

}  // namespace ptxgen::test
