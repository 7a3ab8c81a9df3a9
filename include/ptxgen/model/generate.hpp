// ptxgen/model/generate.hpp - a prompt continued token by token
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ptxgen/model/sampler.hpp"
#include "ptxgen/model/session.hpp"

namespace ptxgen::inline v0::model {

/// Receives each new token before the next one is computed; returning false ends the generation.
struct TokenSink {
  bool (*token)(void* user, std::uint32_t token) = nullptr;
  void* user = nullptr;
};

struct GenerateOptions {
  std::uint32_t max_tokens = 128;
  SamplerOptions sampler;
  /// Tokens that end the text; they are not part of it. Those of the file's tokenizer are the
  /// caller's to give.
  std::vector<std::uint32_t> stop;
  TokenSink on_token;
};

enum class StopReason : std::uint8_t {
  Length,       ///< max_tokens
  StopToken,    ///< one of `stop`
  ContextFull,  ///< the sequence is as long as the session's context
  Caller,       ///< on_token returned false
};
/// "length", "stop-token", "context-full", "caller"
[[nodiscard]] std::string_view to_string(StopReason reason) noexcept;

struct Generated {
  std::vector<std::uint32_t> tokens;
  StopReason reason = StopReason::Length;
  double prefill_ms = 0;  ///< of the prompt
  double decode_ms = 0;   ///< of all tokens after the first
};

/// Appends `prompt` to the session's only sequence and continues it. An empty prompt continues the
/// last logits. Throws as `Session` and `Sampler`; "arguments" if the session has several
/// sequences.
Generated generate(Session& session, std::span<const std::uint32_t> prompt,
                   const GenerateOptions& options = {});

}  // namespace ptxgen::inline v0::model
