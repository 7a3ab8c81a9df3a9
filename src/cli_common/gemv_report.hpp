// src/cli_common/gemv_report.hpp - GEMV problems, plans and predictions as JSON
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ptxgen/kernels/gemv/planner.hpp"

namespace ptxgen::cli {

[[nodiscard]] nlohmann::json to_json(const GemvProblem& problem);
/// The members of the plan, and `text`.
[[nodiscard]] nlohmann::json to_json(const GemvPlan& plan);
[[nodiscard]] nlohmann::json to_json(const GemvPrediction& prediction);
/// The properties that the planner uses:
/// `{"name","target","sms","bandwidth_gb_per_s","read_gb_per_s",..}`.
[[nodiscard]] nlohmann::json to_json(const ptx::Gpu& gpu);

/// The share of the datasheet bandwidth that reads reach, 1e9 bytes per second.
[[nodiscard]] inline double read_rate(const ptx::Gpu& gpu) noexcept {
  return gpu.bandwidth_gb_per_s * gpu.read_share;
}
/// "12.35": with that many decimals.
[[nodiscard]] std::string fixed(double value, int digits);

}  // namespace ptxgen::cli
