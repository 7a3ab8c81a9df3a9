// bench/gemv/statistics.hpp - median and its confidence interval from samples
#pragma once

#include <cstddef>
#include <span>

namespace ptxgen::gemv_bench {

/// Distribution-free statistics of samples, in the samples' unit.
struct Statistics {
  std::size_t n = 0;
  double median = 0;  ///< the middle one; of an even number the mean of the two in the middle
  /// An interval that covers the median of the distribution with at least 95 %: two order
  /// statistics, as far from the ends as possible. Fewer than 6 samples cannot give one: then the
  /// minimum and the maximum, with their lower `coverage`.
  double low = 0;
  double high = 0;
  double coverage = 0;  ///< exact probability, from the binomial distribution
  double p5 = 0;        ///< the smallest sample that 5 % of the samples do not exceed
  double p95 = 0;
  double min = 0;
  double max = 0;
};

/// Of no samples all is 0. O(n log n).
[[nodiscard]] Statistics statistics_of(std::span<const double> samples);

/// Which sorted samples, counted from 1, bound the interval for `n` samples, and its coverage
/// P(first <= B < last), B binomial with n and 1/2. {86, 115, 0.9600} for n = 200. O(n).
struct MedianInterval {
  std::size_t first = 0;
  std::size_t last = 0;
  double coverage = 0;
};
[[nodiscard]] MedianInterval median_interval(std::size_t n) noexcept;

}  // namespace ptxgen::gemv_bench
