// bench/validation/ranking.hpp - the planner's ranking of one GEMV, by terms
#pragma once

#include <string>
#include <vector>

#include "ptxgen/kernels/gemv/planner.hpp"

namespace ptxgen::validation {

/// Tesla V100 PCIe, which GPGPU-Sim 4.2 models, with its own sweep of gpu-benches. No kernel can be
/// built for its sm_70; the plans are those of sm_75.
[[nodiscard]] const ptx::Gpu& v100() noexcept;

/// A plan and its prediction. `rank`: 1 is the planner's first choice; 0: made by hand.
struct Ranked {
  std::size_t rank = 0;
  GemvPlan plan;
  GemvPrediction prediction;
  [[nodiscard]] double us() const noexcept;  ///< without the launch
};

/// T f32 1024 x 1024 on the V100: the planner's first 12 plans, and its first choice with 14 loads
/// in flight on 40, 16 and 8 blocks, with fewer SMs at work.
[[nodiscard]] std::vector<Ranked> ranked_plans();

/// Their terms as a table of Markdown, with the largest of each.
[[nodiscard]] std::string to_markdown(const std::vector<Ranked>& plans);

}  // namespace ptxgen::validation
