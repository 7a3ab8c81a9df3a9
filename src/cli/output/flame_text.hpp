// src/cli/output/flame_text.hpp - a trace as a tree of spans, for people
#pragma once

#include <string>

#include "support/trace_summary.hpp"

namespace ptxgen::cli {

/// Spans as a tree with total and own time, count, median and 95th percentile; then the PTX lines
/// of emulated launches that were executed most often. Ends with a line break.
[[nodiscard]] std::string flame_text(const TraceSummary& summary);

}  // namespace ptxgen::cli
