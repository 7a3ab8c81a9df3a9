// src/cli/output/generation_text.hpp - the report of a generation
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/commands/generation.hpp"
#include "cli/commands/logits_comparison.hpp"

namespace ptxgen::cli {

/// A generation with what its report names.
struct GenerationReport {
  const ModelRun& run;
  const model::Model& model;
  const model::Session& session;
  const GenerationJob& job;
  const Generation& result;
  std::optional<std::string> text;      ///< none without a tokenizer
  std::string chat_template;            ///< that was applied, or empty
  std::optional<double> copy_gb_per_s;  ///< measured beside, on a GPU
  bool by_kernel = false;               ///< the launches of a token, by kernel
  std::optional<LogitsComparison> comparison;

  /// What one step reads.
  [[nodiscard]] double bytes_per_token() const noexcept {
    return static_cast<double>(model.bytes_per_token()) + result.cache_bytes_per_step;
  }
};

[[nodiscard]] nlohmann::json to_json(const GenerationReport& report);
/// Lines for people: device, times, bytes, share of the roofline, kernels.
[[nodiscard]] std::string to_text(const GenerationReport& report);

}  // namespace ptxgen::cli
