// src/cli_common/gemv_report.hpp - GEMV problems, plans and predictions as JSON
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ptxgen/kernels/gemv/planner.hpp"
#include "ptxgen/kernels/model/rates.hpp"

namespace ptxgen::cli {

[[nodiscard]] nlohmann::json to_json(const GemvProblem& problem);
/// The members of the plan, and `text`.
[[nodiscard]] nlohmann::json to_json(const GemvPlan& plan);
[[nodiscard]] nlohmann::json to_json(const GemvPrediction& prediction);
/// `{"mean","worst"}`, relative.
[[nodiscard]] nlohmann::json to_json(const ErrorBand& error);
/// The properties that the planner uses:
/// `{"name","target","sms","bandwidth_gb_per_s","read_gb_per_s",..}`.
[[nodiscard]] nlohmann::json to_json(const ptx::Gpu& gpu);

/// What a kernel that only reads gets, 1e9 bytes per second.
[[nodiscard]] inline double read_rate(const ptx::Gpu& gpu) { return rates_of(gpu).read_gb_per_s; }
/// "predictions of this kind are off by 10 % on average, 20 % at most (docs/predictions.md)"
[[nodiscard]] std::string error_text(const ErrorBand& error);
/// "12.35": with that many decimals.
[[nodiscard]] std::string fixed(double value, int digits);

}  // namespace ptxgen::cli
