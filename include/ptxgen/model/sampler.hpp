// ptxgen/model/sampler.hpp - tokens drawn from logits
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ptxgen::inline v0::model {

struct SamplerOptions {
  float temperature = 0.8f;  ///< divides the logits; 0: greedy
  std::uint32_t top_k = 40;  ///< most likely tokens that are kept; 0: all
  float top_p = 0.95f;       ///< the smallest set whose probability reaches it; 1: all
  float min_p = 0.05f;       ///< of the largest probability; less likely ones go; 0: all
  std::uint64_t seed = 0;
};

/// Draws tokens. Order: top-k, top-p, min-p, temperature; each filter sees the probabilities that
/// the one before has left, scaled to a sum of 1, and keeps at least one token. Equal logits are
/// ordered by token. A draw takes one number of a generator that `seed` starts (SplitMix64), a
/// greedy one none, so a seed gives the same tokens in every build and on every machine, as far as
/// `exp` of f64 rounds the same. A NaN is never drawn.
///
/// Throws `Error` (Stage::Launch): "bad-option" for a temperature below 0, a top_p outside (0, 1]
/// or a min_p outside [0, 1], with name and value; "no-logits" if there is no logit that is a
/// number.
///
/// Threads: one at a time.
class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options = {});
  [[nodiscard]] std::uint32_t sample(std::span<const float> logits);
  [[nodiscard]] const SamplerOptions& options() const noexcept { return options_; }
  /// Whether it needs no logits: the token with the largest one is drawn.
  [[nodiscard]] bool is_greedy() const noexcept { return options_.temperature == 0; }

 private:
  struct Candidate {
    double probability = 0;
    float logit = 0;
    std::uint32_t token = 0;
  };
  void collect(std::span<const float> logits);
  void normalise(double temperature);
  void filter();

  SamplerOptions options_;
  std::uint64_t state_ = 0;
  std::vector<Candidate> candidates_;
};

}  // namespace ptxgen::inline v0::model
