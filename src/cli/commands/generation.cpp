// src/cli/commands/generation.cpp - a prompt continued on a device, measured
#include "cli/commands/generation.hpp"

#include <algorithm>
#include <utility>

#include "cli/commands/interrupt.hpp"

namespace ptxgen::cli {

namespace {

class Generator {
 public:
  Generator(ModelRun& run, model::Session& session, const GenerationJob& job)
      : run_(run), session_(session), job_(job), sampler_(job.sampler) {}

  bool prefill(const LayerDumps& dumps) {
    const Span span(run_.trace(), "prefill", "program");
    const Clock::time_point begin = Clock::now();
    prefill_in_chunks(session_, job_.prompt, job_.all_logits, [&](std::span<const float> logits) {
      dumps.check();
      keep(logits);
      return !interrupt_.requested();
    });
    result_.prefill_seconds = seconds_since(begin);
    result_.prefill_kernels = run_.take_statistics();
    return session_.position() == job_.prompt.size();
  }

  // The session's last logits are those of the next token.
  void decode(const std::function<void(std::uint32_t token)>& on_token) {
    const Span span(run_.trace(), "decode", "program");
    const Clock::time_point begin = Clock::now();
    Clock::time_point first = begin;
    while (result_.tokens.size() < job_.max_tokens) {
      const std::uint32_t token = next();
      if (result_.steps == 0) {
        first = Clock::now();
        result_.first_token_seconds = result_.prefill_seconds + seconds_since(begin);
      }
      if (std::ranges::find(job_.ends, token) != job_.ends.end()) {
        stop("stop-token");
        break;
      }
      result_.tokens.push_back(token);
      on_token(token);
      if (!continues()) break;
      step(token);
    }
    if (result_.steps != 0) result_.decode_seconds = seconds_since(first);
  }

  Generation finish() {
    run_.context().synchronize();
    result_.decode_kernels = run_.take_statistics();
    if (result_.steps != 0) result_.cache_bytes_per_step /= static_cast<double>(result_.steps);
    return std::move(result_);
  }
  void stop(std::string_view reason) { result_.stop = reason; }

 private:
  std::uint32_t next() {
    if (sampler_.is_greedy() && !job_.all_logits) return session_.greedy();
    return sampler_.sample(session_.logits());
  }

  // Whether the last token is to be appended.
  bool continues() {
    const bool full = session_.position() == session_.options().context;
    if (result_.tokens.size() == job_.max_tokens) return job_.all_logits && !full;
    if (full) stop("context-full");
    if (interrupt_.requested()) stop("interrupted");
    return !full && !interrupt_.requested();
  }

  void step(std::uint32_t token) {
    const Span span(run_.trace(), "step", "program");
    // Every step has the same launches; the instructions of one are enough.
    if (result_.steps == 0) run_.count_instructions(true);
    session_.decode(token);
    if (result_.steps == 0) run_.count_instructions(false);
    if (job_.all_logits) keep(session_.logits());
    ++result_.steps;
    result_.cache_bytes_per_step += static_cast<double>(
        cache_bytes(session_.model().config(), session_.options().cache, session_.position()));
  }

  void keep(std::span<const float> logits) {
    result_.logits.insert(result_.logits.end(), logits.begin(), logits.end());
  }

  ModelRun& run_;
  model::Session& session_;
  const GenerationJob& job_;
  model::Sampler sampler_;
  const Interrupt interrupt_;
  Generation result_;
};

}  // namespace

Generation run_generation(ModelRun& run, model::Session& session, const GenerationJob& job,
                          const LayerDumps& dumps,
                          const std::function<void(std::uint32_t token)>& on_token) {
  (void)run.take_statistics();  // of the loading
  Generator generator(run, session, job);
  if (generator.prefill(dumps)) {
    generator.decode(on_token);
  } else {
    generator.stop("interrupted");
  }
  return generator.finish();
}

std::uint64_t cache_bytes(const model::ModelConfig& config, ElementType type,
                          std::uint32_t positions) noexcept {
  const std::uint64_t row = 2 * bytes(type, config.kv_width());
  std::uint64_t sum = 0;
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    const bool all = config.is_global(layer);
    sum += row * (all ? positions : std::min(positions, config.window));
  }
  return sum;
}

}  // namespace ptxgen::cli
