// src/model/generate.cpp - a prompt continued token by token
#include "ptxgen/model/generate.hpp"

#include <algorithm>
#include <chrono>

#include "model/format.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::model {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

}  // namespace

std::string_view to_string(StopReason reason) noexcept {
  constexpr std::string_view kNames[] = {"length", "stop-token", "context-full", "caller"};
  return kNames[static_cast<std::size_t>(reason)];
}

Generated generate(Session& session, std::span<const std::uint32_t> prompt,
                   const GenerateOptions& options) {
  if (session.options().sequences != 1) {
    throw Error(Stage::Launch, "arguments",
                format_text("generate continues one sequence; the session has {}: call prefill and "
                            "decode",
                            session.options().sequences));
  }
  Sampler sampler(options.sampler);
  Generated result;
  const Clock::time_point begin = Clock::now();
  if (!prompt.empty()) session.prefill(prompt);
  result.prefill_ms = milliseconds_since(begin);
  while (result.tokens.size() < options.max_tokens) {
    const std::uint32_t token =
        sampler.is_greedy() ? session.greedy() : sampler.sample(session.logits());
    if (std::ranges::find(options.stop, token) != options.stop.end()) {
      result.reason = StopReason::StopToken;
      break;
    }
    result.tokens.push_back(token);
    if (options.on_token.token != nullptr &&
        !options.on_token.token(options.on_token.user, token)) {
      result.reason = StopReason::Caller;
      break;
    }
    if (result.tokens.size() == options.max_tokens) break;
    if (session.position() == session.options().context) {
      result.reason = StopReason::ContextFull;
      break;
    }
    const Clock::time_point decode = Clock::now();
    session.decode(token);
    result.decode_ms += milliseconds_since(decode);
  }
  return result;
}

}  // namespace ptxgen::inline v0::model
