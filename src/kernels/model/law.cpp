// src/kernels/model/law.cpp - the law of memory under load
#include "kernels/model/law.hpp"

#include <algorithm>
#include <cmath>

namespace ptxgen::inline v0::model {

namespace {

// Fitted to the copies and triads of seven GPUs (gpu-stream).
constexpr double kMixedRateLoss = 0.33;
constexpr double kMixedGrowth = 4.95;

}  // namespace

double under_load(const Sequence& sequence, double dram_us) noexcept {
  const double a = sequence.us;
  const double g = sequence.growth_us * dram_us * dram_us;
  // Newton's method from above on t^3 - a t^2 - g, which is convex there.
  double t = a + std::cbrt(g);
  for (int i = 0; i < 30 && t > 0; ++i) {
    const double next = t - (t * t * (t - a) - g) / (t * (3 * t - 2 * a));
    if (t - next <= 1e-9 * t) break;
    t = next;
  }
  return std::max(t, dram_us);
}

DramRates mixed(const GpuRates& rates, double written_share) noexcept {
  const double mix = written_share * (1 - written_share);
  return {rates.read_gb_per_s * (1 - kMixedRateLoss * mix),
          rates.growth_ns * (1 + kMixedGrowth * mix)};
}

}  // namespace ptxgen::inline v0::model
