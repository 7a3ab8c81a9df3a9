// src/tile/limit_finding.hpp - findings of the rule tile-limits
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/finding.hpp"

namespace ptxgen::inline v0::tile {

/// A finding of the rule with `rule` and `cure` as details.
[[nodiscard]] inline Finding limit_finding(Severity severity, std::string what, std::string rule,
                                           std::string cure) {
  Finding finding;
  finding.severity = severity;
  finding.rule = "tile-limits";
  finding.message = std::move(what);
  finding.details = {"rule: " + std::move(rule), "cure: " + std::move(cure)};
  return finding;
}

/// Throws the first finding as `Error` (Stage::Build, "tile-limits"), all of them in its log.
void require_none(const std::vector<Finding>& findings, std::string_view kernel,
                  std::string_view target);

}  // namespace ptxgen::inline v0::tile
