// src/cli/output/coverage_text.hpp - coverage as text and pictures
#pragma once

#include <string>
#include <vector>

#include "coverage/coverage.hpp"

namespace ptxgen::cli {

/// Each case of each kernel, their sums, what no case executes, and the heat map of the largest
/// watched buffer.
[[nodiscard]] std::string coverage_text(const coverage::Coverage& coverage);
/// A row for each described kernel, and the kernels with the most outcomes missing.
[[nodiscard]] std::string coverage_overview(const coverage::Coverage& coverage);

/// Writes `coverage.json` and the heat maps into a folder, which is made. Returns the names of the
/// files. Throws `Error` (Stage::Io).
std::vector<std::string> write_coverage(const std::string& folder,
                                        const coverage::Coverage& coverage);

}  // namespace ptxgen::cli
