// bench/gemv/statistics.cpp - median and its confidence interval from samples
#include "bench/gemv/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ptxgen::gemv_bench {

MedianInterval median_interval(std::size_t n) noexcept {
  if (n == 0) return {};
  constexpr double kEachSide = 0.025;
  const auto count = static_cast<double>(n);
  // In logarithms: 2^-n itself is 0 from n = 1075 on.
  double log_probability = -count * std::log(2.0);
  double below = std::exp(log_probability);  // P(B < first)
  std::size_t first = 1;
  while (2 * (first + 1) <= n) {
    const auto k = static_cast<double>(first);
    log_probability += std::log((count - k + 1) / k);
    const double more = below + std::exp(log_probability);
    if (more > kEachSide) break;
    below = more;
    ++first;
  }
  return {first, n + 1 - first, std::max(0.0, 1 - 2 * below)};
}

Statistics statistics_of(std::span<const double> samples) {
  Statistics found;
  found.n = samples.size();
  if (samples.empty()) return found;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  found.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  const MedianInterval interval = median_interval(n);
  found.low = sorted[interval.first - 1];
  found.high = sorted[interval.last - 1];
  found.coverage = interval.coverage;
  // ceil(p n) in whole numbers: 5 % is 1/20.
  found.p5 = sorted[(n + 19) / 20 - 1];
  found.p95 = sorted[(19 * n + 19) / 20 - 1];
  found.min = sorted.front();
  found.max = sorted.back();
  return found;
}

}  // namespace ptxgen::gemv_bench
