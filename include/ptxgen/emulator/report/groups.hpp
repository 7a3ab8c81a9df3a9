// ptxgen/emulator/report/groups.hpp - findings of a run, grouped by cause
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/ptx/groups.hpp"

namespace ptxgen::inline v0::emulator {

/// As `group_findings`; a group's count is the sum of its members' (RunFinding::count).
[[nodiscard]] std::vector<FindingGroup> group_findings(std::span<const RunFinding> findings);

/// The text of the group's example, and the number of findings in the group.
[[nodiscard]] std::string to_text(const FindingGroup& group, std::span<const RunFinding> findings);

}  // namespace ptxgen::inline v0::emulator
