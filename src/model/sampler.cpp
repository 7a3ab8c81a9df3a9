// src/model/sampler.cpp - tokens drawn from logits
#include "ptxgen/model/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/format.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::model {

namespace {

// SplitMix64: Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators, 2014.
constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15u;
std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void check_option(std::string_view name, float value, bool good, std::string_view expected) {
  if (good) return;
  throw Error(Stage::Launch, "bad-option",
              format_text("{} is {}; expects {}", name, value, expected));
}

[[noreturn]] void no_logits(std::size_t count) {
  throw Error(
      Stage::Launch, "no-logits",
      format_text("none of {} logits is a number above -inf; there is no token to draw", count));
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options) : options_(options), state_(options.seed) {
  const float t = options.temperature;
  check_option("temperature", t, t >= 0 && std::isfinite(t), "a number of at least 0");
  check_option("top_p", options.top_p, options.top_p > 0 && options.top_p <= 1,
               "a number above 0, up to 1");
  check_option("min_p", options.min_p, options.min_p >= 0 && options.min_p <= 1, "0 to 1");
}

// Sorted, the largest logit first.
void Sampler::collect(std::span<const float> logits) {
  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > -std::numeric_limits<float>::infinity()) {
      candidates_.push_back({0, logits[i], static_cast<std::uint32_t>(i)});
    }
  }
  if (candidates_.empty()) no_logits(logits.size());
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  };
  std::size_t kept = candidates_.size();
  if (options_.top_k != 0) kept = std::min<std::size_t>(kept, options_.top_k);
  if (options_.temperature == 0) kept = 1;
  const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(kept);
  std::partial_sort(candidates_.begin(), end, candidates_.end(), before);
  candidates_.erase(end, candidates_.end());
}

// Probabilities of the candidates, their sum being 1.
void Sampler::normalise(double temperature) {
  const float largest = candidates_.front().logit;
  double sum = 0;
  for (Candidate& one : candidates_) {
    // Infinities are equal.
    const double below = one.logit == largest ? 0 : double{one.logit} - double{largest};
    one.probability = std::exp(below / temperature);
    sum += one.probability;
  }
  for (Candidate& one : candidates_) one.probability /= sum;
}

void Sampler::filter() {
  if (options_.top_p < 1) {
    normalise(1);
    double sum = 0;
    std::size_t kept = 0;
    while (kept < candidates_.size() && sum < double{options_.top_p}) {
      sum += candidates_[kept++].probability;
    }
    candidates_.resize(std::max<std::size_t>(1, kept));
  }
  if (options_.min_p > 0) {
    normalise(1);
    const double limit = double{options_.min_p} * candidates_.front().probability;
    std::size_t kept = 1;
    while (kept < candidates_.size() && candidates_[kept].probability >= limit) ++kept;
    candidates_.resize(kept);
  }
}

std::uint32_t Sampler::sample(std::span<const float> logits) {
  collect(logits);
  if (is_greedy()) return candidates_.front().token;
  filter();
  normalise(double{options_.temperature});
  state_ += kGamma;
  const double drawn = static_cast<double>(mixed(state_) >> 11) * 0x1p-53;
  double sum = 0;
  for (const Candidate& one : candidates_) {
    sum += one.probability;
    if (drawn < sum) return one.token;
  }
  return candidates_.back().token;  // the sum was rounded below 1
}

}  // namespace ptxgen::inline v0::model
