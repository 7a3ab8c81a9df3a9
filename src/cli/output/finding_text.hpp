// src/cli/output/finding_text.hpp - findings by cause, as text and JSON
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "ptxgen/emulator/report/groups.hpp"
#include "ptxgen/ptx/groups.hpp"

namespace ptxgen::cli {

/// One entry for each cause, each with a final newline, at most 20 of them, errors before warnings
/// before notes where some are left out; then a line that says how many. With `all` every finding.
[[nodiscard]] std::string findings_text(std::span<const Finding> findings, bool all);
[[nodiscard]] std::string findings_text(std::span<const emulator::RunFinding> findings, bool all);

/// "2 errors, 1 warning, 3 notes", by cause; empty if there are none.
[[nodiscard]] std::string findings_summary(std::span<const emulator::RunFinding> findings);

/// `[{"example","members","count"}]`: indices of the findings with one cause.
[[nodiscard]] nlohmann::json groups_json(std::span<const Finding> findings);
[[nodiscard]] nlohmann::json groups_json(std::span<const emulator::RunFinding> findings);

}  // namespace ptxgen::cli
