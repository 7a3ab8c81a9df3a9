// bench/gemv/tune.hpp - measures the planner's short list
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "bench/gemv/run.hpp"
#include "runtime/launch/tuned_plans.hpp"

namespace ptxgen::gemv_bench {

struct TuneOptions {
  std::vector<GemvProblem> problems;
  std::size_t candidates = 8;  ///< of the planner's ranking, from its first on
  MeasureOptions measure;      ///< one metric: that decides
  std::uint64_t rotation_bytes = 0;
  std::uint32_t min_chain = 64;
  std::uint64_t lead_bytes = 0;
  std::uint64_t seed = 0;
  double seconds = 0;  ///< begin no problem after so many; 0: no limit
};

/// The problems of shapes, layouts and types. `xy`: "same" (x and y as the weights) and "f32".
[[nodiscard]] std::vector<GemvProblem> tune_problems(const std::vector<BenchShape>& shapes,
                                                     const std::vector<GemvLayout>& layouts,
                                                     const std::vector<ElementType>& types,
                                                     const std::vector<std::string>& xy);

/// The candidate that is kept: the planner's first, unless the interval of another is below that of
/// the first; then the one of those with the smallest median. Null if no candidate has a
/// time.
[[nodiscard]] const ArmResult* best_candidate(const std::vector<ArmResult>& results,
                                              Metric metric) noexcept;

/// Measures the candidates of each problem side by side and passes each record to `keep` as soon as
/// it is complete, failures with their reason included. Stops after a fault that loses the context.
void tune(const Device& device, const TuneOptions& options, const Settings& settings,
          const std::function<void(TunedRecord)>& keep, const BenchProgress& progress);

}  // namespace ptxgen::gemv_bench
