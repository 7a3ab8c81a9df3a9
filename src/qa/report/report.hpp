// src/qa/report/report.hpp - reports as text, JSON and HTML
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "qa/run.hpp"

namespace ptxgen::qa {

/// A table for each section, then points, levels and mutants. Ends with a newline.
[[nodiscard]] std::string to_text(const Report& report);

/// `{"lines":[{"id","section","points","status","reason","evidence"}],"score","applicable",..}`
[[nodiscard]] nlohmann::json to_json(const Report& report);

/// One page without references to anything outside it: scores with bars, every line with claim,
/// how it was decided, figures, command and mutant. The same bytes for the same report.
[[nodiscard]] std::string to_html(const Report& report);

/// "9 of 12 applicable points; 17 need a GPU, 3 a record of scripts/test"
[[nodiscard]] std::string score_text(const Score& score, bool gpu);

}  // namespace ptxgen::qa
