// src/cli/commands/generation.hpp - a prompt continued on a device, measured
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "cli/commands/layer_dump.hpp"
#include "cli/commands/model_run.hpp"
#include "ptxgen/model/sampler.hpp"

namespace ptxgen::cli {

struct GenerationJob {
  std::vector<std::uint32_t> prompt;
  std::uint32_t max_tokens = 128;
  model::SamplerOptions sampler;
  std::vector<std::uint32_t> ends;  ///< tokens that end the text, and are not part of it
  bool all_logits = false;
};

struct Generation {
  std::vector<std::uint32_t> tokens;
  std::string_view stop = "length";  ///< or "stop-token", "context-full", "interrupted"
  double prefill_seconds = 0;
  double first_token_seconds = 0;   ///< from the prompt to the first token; 0 if there is none
  double decode_seconds = 0;        ///< of all steps
  std::uint64_t steps = 0;          ///< tokens that were appended one by one
  double cache_bytes_per_step = 0;  ///< keys and values that a step reads, on average
  std::vector<float> logits;        ///< [positions][vocabulary] with `all_logits`
  std::vector<KernelStatistics> prefill_kernels;
  std::vector<KernelStatistics> decode_kernels;  ///< of all steps; instructions of the first

  [[nodiscard]] double tokens_per_second() const noexcept {
    return decode_seconds > 0 ? static_cast<double>(steps) / decode_seconds : 0;
  }
};

/// Appends the prompt to an empty session and continues it until it has `max_tokens` more, one of
/// `ends` is drawn, the context is full, or SIGINT comes. `on_token` gets each token before the
/// next one is computed.
[[nodiscard]] Generation run_generation(ModelRun& run, model::Session& session,
                                        const GenerationJob& job, const LayerDumps& dumps,
                                        const std::function<void(std::uint32_t token)>& on_token);

/// Bytes of keys and values that a step at that position reads.
[[nodiscard]] std::uint64_t cache_bytes(const model::ModelConfig& config, ElementType type,
                                        std::uint32_t positions) noexcept;

}  // namespace ptxgen::cli
