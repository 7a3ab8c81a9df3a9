// src/cli_common/decode_estimate.hpp - the GEMVs of one token, predicted
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli_common/command_line.hpp"
#include "ptxgen/kernels/gemv/models.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"
#include "ptxgen/support/settings.hpp"

namespace ptxgen::cli {

/// One matrix shape of the model, as checkpoints store it: layout R, x and y f32.
struct EstimatedShape {
  DecodeShape shape;
  GemvProblem problem;
  GemvCandidate choice;  ///< the planner's first
  /// All `shape.count` GEMVs, each a link of a chain, in microseconds.
  [[nodiscard]] double total_us() const noexcept {
    return choice.prediction.chained_us * shape.count;
  }
  [[nodiscard]] double bytes() const noexcept;  ///< weights of all `shape.count` matrices
};

/// The GEMVs of one token as one chain. Without attention over the context, norms and the like, so
/// the rate is an upper bound of tokens per second; so is the roofline.
struct DecodeEstimate {
  std::vector<EstimatedShape> shapes;
  double bytes = 0;         ///< weights
  double predicted_us = 0;  ///< sum of the shapes' totals
  std::uint32_t gemvs = 0;
  [[nodiscard]] ErrorBand error() const { return shapes.front().choice.prediction.error; }
  [[nodiscard]] double tokens_per_s() const noexcept { return 1e6 / predicted_us; }
  /// Tokens per second if weights arrive at that rate, in 1e9 bytes per second.
  [[nodiscard]] double roofline(double gb_per_s) const noexcept { return gb_per_s * 1e9 / bytes; }
};

[[nodiscard]] DecodeEstimate estimate_decode(const DecoderModel& model, ElementType weights,
                                             bool fused, const ptx::Gpu& gpu);

/// Options of the commands that predict or measure one token, or its GEMVs.
struct DecodeOptions {
  std::string model;
  std::string dtype = "f16";
  std::string device;
  std::string output;
  bool unfused = false;
  bool json = false;
};
/// `options` must live as long as the command.
void add_decode_options(Command& command, DecodeOptions& options, bool needs_model = true);
/// A model of the table. Throws `UsageError` listing them.
[[nodiscard]] const DecoderModel& decoder_model(const std::string& name);
[[nodiscard]] nlohmann::json to_json(const DecoderModel& model);

/// An estimate with everything that its report names.
struct DecodeReport {
  const DecoderModel* model = nullptr;
  ElementType weights = ElementType::f16;
  bool fused = true;
  ptx::Gpu gpu;
  DecodeEstimate estimate;
  /// Fills `gpu` and `estimate`.
  void predict_for(const ptx::Gpu& on);
};
/// Without prediction. Throws `UsageError` for an unknown model or type.
[[nodiscard]] DecodeReport decode_report(const DecodeOptions& options);
[[nodiscard]] nlohmann::json to_json(const DecodeReport& report);
[[nodiscard]] std::string to_text(const DecodeReport& report);

}  // namespace ptxgen::cli
