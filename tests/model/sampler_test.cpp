// tests/model/sampler_test.cpp - tokens drawn from logits
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "ptxgen/model/sampler.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::test {
namespace {

using model::Sampler;
using model::SamplerOptions;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// No filter, the temperature 1.
SamplerOptions open_options(std::uint64_t seed = 1) {
  SamplerOptions options;
  options.temperature = 1;
  options.top_k = 0;
  options.top_p = 1;
  options.min_p = 0;
  options.seed = seed;
  return options;
}

// How often each token is drawn.
std::map<std::uint32_t, int> draw(const SamplerOptions& options, const std::vector<float>& logits,
                                  int count) {
  Sampler sampler(options);
  std::map<std::uint32_t, int> drawn;
  for (int i = 0; i < count; ++i) ++drawn[sampler.sample(logits)];
  return drawn;
}

// Logits of these probabilities.
std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)) + 3);
  return logits;
}

std::string error_of(const SamplerOptions& options) {
  try {
    const Sampler sampler(options);
  } catch (const Error& error) {
    return error.code + ": " + error.message;
  }
  return "no error";
}

}  // namespace

TEST_CASE("draws follow the probabilities") {
  const std::vector<double> p = {0.5, 0.05, 0.3, 0.15};
  constexpr int kDraws = 40000;
  const auto drawn = draw(open_options(), logits_of(p), kDraws);
  for (std::uint32_t i = 0; i < p.size(); ++i) {
    // Five standard deviations of a binomial distribution.
    const double expected = p[i] * kDraws;
    CHECK(std::abs(drawn.at(i) - expected) < 5 * std::sqrt(expected * (1 - p[i])));
  }
  SamplerOptions hot = open_options();
  hot.temperature = 2;  // probabilities in proportion to their roots
  double sum = 0;
  for (const double one : p) sum += std::sqrt(one);
  const auto warmer = draw(hot, logits_of(p), kDraws);
  for (std::uint32_t i = 0; i < p.size(); ++i) {
    const double share = std::sqrt(p[i]) / sum;
    CHECK(std::abs(warmer.at(i) - share * kDraws) < 5 * std::sqrt(share * (1 - share) * kDraws));
  }
}

TEST_CASE("filters keep the tokens that they say") {
  const std::vector<float> logits = logits_of({0.05, 0.4, 0.1, 0.3, 0.15});
  const auto kept = [&](const SamplerOptions& options) {
    std::vector<std::uint32_t> tokens;
    for (const auto& [token, times] : draw(options, logits, 3000)) tokens.push_back(token);
    return tokens;
  };
  using Kept = std::vector<std::uint32_t>;
  CHECK(kept(open_options()) == Kept{0, 1, 2, 3, 4});
  SamplerOptions options = open_options();
  options.top_k = 2;
  CHECK(kept(options) == Kept{1, 3});
  options = open_options();
  options.top_p = 0.69F;
  CHECK(kept(options) == Kept{1, 3});
  options.top_p = 0.71F;
  CHECK(kept(options) == Kept{1, 3, 4});
  options.top_p = 1e-6F;
  CHECK(kept(options) == Kept{1});
  options = open_options();
  options.min_p = 0.3F;
  CHECK(kept(options) == Kept{1, 3, 4});
  options.min_p = 1;
  CHECK(kept(options) == Kept{1});
  // top-k first: the sum of the two is 0.7, of which 0.4 is 57 %.
  options = open_options();
  options.top_k = 2;
  options.top_p = 0.56F;
  CHECK(kept(options) == Kept{1});
  options.top_p = 0.58F;
  CHECK(kept(options) == Kept{1, 3});
  // The temperature comes last, so filters do not see it.
  options = open_options();
  options.top_p = 0.69F;
  options.temperature = 50;
  CHECK(kept(options) == Kept{1, 3});
}

TEST_CASE("a seed gives the same tokens everywhere") {
  std::vector<float> logits(50);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 7);
  const auto tokens = [&](std::uint64_t seed) {
    Sampler sampler(open_options(seed));
    std::vector<std::uint32_t> all;
    for (int i = 0; i < 8; ++i) all.push_back(sampler.sample(logits));
    return all;
  };
  CHECK(tokens(42) == tokens(42));
  CHECK(tokens(42) != tokens(43));
  CHECK(tokens(42) == std::vector<std::uint32_t>{26, 13, 27, 27, 6, 4, 20, 40});
}

TEST_CASE("greedy takes the largest logit, the lowest token of equal ones") {
  SamplerOptions options;
  options.temperature = 0;
  Sampler sampler(options);
  CHECK(sampler.is_greedy());
  CHECK(sampler.sample(std::vector<float>{1, 5, kNan, 5, -kInfinity}) == 1);
  CHECK(sampler.sample(std::vector<float>{kNan, -kInfinity, -3}) == 2);
  CHECK(sampler.sample(std::vector<float>{1, kInfinity, kInfinity}) == 1);
}

TEST_CASE("logits that are no numbers are never drawn") {
  const auto drawn = draw(open_options(), {kNan, 1, -kInfinity, 1, kNan}, 200);
  CHECK(drawn.size() == 2);
  CHECK(drawn.count(1) + drawn.count(3) == 2);
  CHECK(draw(open_options(), {1, kInfinity, 2, kInfinity}, 200).size() == 2);
  Sampler sampler(open_options());
  CHECK_THROWS_WITH(sampler.sample(std::vector<float>{kNan, -kInfinity}),
                    Catch::Contains("none of 2 logits is a number above -inf"));
}

TEST_CASE("a sampler refuses values that it cannot use") {
  SamplerOptions options;
  options.temperature = -0.5F;
  CHECK(error_of(options) == "bad-option: temperature is -0.5; expects a number of at least 0");
  options.temperature = kInfinity;
  CHECK(error_of(options) == "bad-option: temperature is inf; expects a number of at least 0");
  options = {};
  options.top_p = 0;
  CHECK(error_of(options) == "bad-option: top_p is 0; expects a number above 0, up to 1");
  options.top_p = 1.5F;
  CHECK(error_of(options) == "bad-option: top_p is 1.5; expects a number above 0, up to 1");
  options = {};
  options.min_p = kNan;
  CHECK(error_of(options) == "bad-option: min_p is nan; expects 0 to 1");
}

}  // namespace ptxgen::test
