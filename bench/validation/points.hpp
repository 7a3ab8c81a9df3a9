// bench/validation/points.hpp - published timings that predictions are held to
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/kernels/gemv/plan.hpp"
#include "ptxgen/kernels/model/predict.hpp"

namespace ptxgen::validation {

/// One timing and the launch that it is of.
struct Point {
  std::string label;  ///< "block 256, 4096 elements"
  double measured_us = 0;
  LaunchWork work;      ///< of all kinds but a GEMV
  GemvProblem problem;  ///< of a GEMV
  /// Of a GEMV as its author launches it; without it the planner's first choice is predicted.
  std::optional<GemvPlan> plan;
};

/// Timings of one kind on one GPU by one source.
struct Series {
  std::string name;  ///< "gpu-stream read"
  std::string gpu;   ///< of the GPU table
  std::string source;
  Regime regime = Regime::Reads;
  PredictOptions options;
  std::vector<Point> points;
};

/// points.json, with which the program was built.
[[nodiscard]] std::string_view built_in_points() noexcept;

/// Series as points.json has them. Throws `UsageError` naming the series for an unknown GPU, kind
/// or boundary, or a field that is missing.
[[nodiscard]] std::vector<Series> read_points(const nlohmann::json& document);

/// All sweeps of a checkout of github.com/te42kyfo/gpu-benches that the GPU table knows the GPU of.
/// Throws `UsageError` if the folder has none.
[[nodiscard]] std::vector<Series> read_sweeps(const std::filesystem::path& folder);

}  // namespace ptxgen::validation
