// src/cli/commands/estimate.hpp - the GEMVs of one token, predicted
#pragma once

#include <cstdint>
#include <vector>

#include "ptxgen/kernels/gemv/models.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"

namespace ptxgen::cli {

/// One matrix shape of the model, as checkpoints hold it: layout R, x and y f32.
struct EstimatedShape {
  DecodeShape shape;
  GemvProblem problem;
  GemvCandidate choice;  ///< the planner's first
  /// Of all `shape.count` GEMVs, each a link of a chain, in microseconds.
  [[nodiscard]] double total_us() const noexcept {
    return choice.prediction.chained_us * shape.count;
  }
  [[nodiscard]] double bytes() const noexcept;  ///< weights of all `shape.count` matrices
};

/// The GEMVs of one token as one chain. Attention over the context, norms and the like are not in
/// it: an upper bound of tokens per second, as is the roofline.
struct DecodeEstimate {
  std::vector<EstimatedShape> shapes;
  double bytes = 0;         ///< weights
  double predicted_us = 0;  ///< sum of the shapes' totals
  std::uint32_t gemvs = 0;
  [[nodiscard]] double tokens_per_s() const noexcept { return 1e6 / predicted_us; }
  /// That a rate of weights would allow, in 1e9 bytes per second.
  [[nodiscard]] double roofline(double gb_per_s) const noexcept { return gb_per_s * 1e9 / bytes; }
};

[[nodiscard]] DecodeEstimate estimate_decode(const DecoderModel& model, GemvType weights,
                                             bool fused, const ptx::Gpu& gpu);

}  // namespace ptxgen::cli
