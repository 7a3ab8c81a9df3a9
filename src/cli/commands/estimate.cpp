// src/cli/commands/estimate.cpp - the GEMVs of one token, predicted
#include "cli/commands/estimate.hpp"

#include <utility>

namespace ptxgen::cli {

double EstimatedShape::bytes() const noexcept {
  return static_cast<double>(shape.elements()) * ptxgen::bytes(problem.weights);
}

DecodeEstimate estimate_decode(const DecoderModel& model, GemvType weights, bool fused,
                               const ptx::Gpu& gpu) {
  DecodeEstimate estimate;
  for (const DecodeShape& shape : decode_shapes(model, fused)) {
    EstimatedShape row;
    row.shape = shape;
    row.problem.k = shape.k;
    row.problem.n = shape.n;
    row.problem.layout = GemvLayout::R;
    row.problem.weights = weights;
    row.choice = rank_gemv_plans(row.problem, gpu).front();
    estimate.bytes += row.bytes();
    estimate.predicted_us += row.total_us();
    estimate.gemvs += shape.count;
    estimate.shapes.push_back(std::move(row));
  }
  return estimate;
}

}  // namespace ptxgen::cli
