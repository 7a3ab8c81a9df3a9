// ptxgen/ptx/groups.hpp - grouping findings by source line and cause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/ptx/finding.hpp"

namespace ptxgen::inline v0 {

/// Findings with one cause: same severity, rule, kernel and subject, at the same source line (and
/// the same other source line). Without `.loc` the C++ builder call replaces the source line, or
/// else the PTX line.
struct FindingGroup {
  std::size_t example = 0;           ///< the first member, representative of all
  std::vector<std::size_t> members;  ///< indices of the findings, in their order
  std::uint64_t count = 0;           ///< total occurrences of the members
};

/// Groups in the order of their first members. `counts[i]` is the number of occurrences of finding
/// `i`; without counts each occurs once.
[[nodiscard]] std::vector<FindingGroup> group_findings(std::span<const Finding> findings,
                                                       std::span<const std::uint64_t> counts = {});

/// A detail line for the example of a group: "5 findings of this cause, at PTX
/// lines 12, 15, 18 and 2 more". Empty for a group of one.
[[nodiscard]] std::string more_of(const FindingGroup& group, std::span<const Finding> findings);

}  // namespace ptxgen::inline v0
