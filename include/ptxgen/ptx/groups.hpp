// ptxgen/ptx/groups.hpp - findings of one source line and cause as one
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/ptx/finding.hpp"

namespace ptxgen::inline v0 {

/// Findings with one cause: same severity, rule, kernel and subject, at the same source line (and
/// that of the other party). Without `.loc` the C++ builder call stands for the source line, and
/// without that the PTX line.
struct FindingGroup {
  std::size_t example = 0;           ///< the first member, which stands for all
  std::vector<std::size_t> members;  ///< indices of the findings, in their order
  std::uint64_t count = 0;           ///< how often the members were found, together
};

/// Groups in the order of their first members. `counts[i]` says how often finding `i` was found;
/// without them each counts once.
[[nodiscard]] std::vector<FindingGroup> group_findings(std::span<const Finding> findings,
                                                       std::span<const std::uint64_t> counts = {});

/// The further line that the text of a group's example gets: "5 findings of this cause, at PTX
/// lines 12, 15, 18 and 2 more". Empty for a group of one.
[[nodiscard]] std::string more_of(const FindingGroup& group, std::span<const Finding> findings);

}  // namespace ptxgen::inline v0
