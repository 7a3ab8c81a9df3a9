// src/cli/gemv_numbers.cpp - how far a result of ptxgen gemv is off
#include "cli/gemv_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ptxgen::cli {

std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  std::string digits(16, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    digits[15 - i] = "0123456789abcdef"[hash >> (4 * i) & 15];
  }
  return "fnv1a64:" + digits;
}

Comparison compare(std::span<const float> y, const GemvReference& reference,
                   std::uint64_t roundings) {
  Comparison made;
  double errors = 0;
  double squares = 0;
  for (std::size_t j = 0; j < y.size(); ++j) {
    const double error = std::abs(double{y[j]} - reference.y[j]);
    const double bound = gemv_error_bound(reference.magnitude[j], roundings);
    errors += error * error;
    squares += reference.y[j] * reference.y[j];
    // Not <=: a NaN lies outside.
    const bool inside = error <= bound;
    if (!inside) ++made.outside;
    double share = bound > 0 ? error / bound : (inside ? 0 : std::numeric_limits<double>::max());
    if (!std::isfinite(share)) share = std::numeric_limits<double>::max();
    if (j == 0 || share > made.worst) {
      made.worst = share;
      made.bound = bound;
    }
    made.max_error = std::isnan(error) ? error : std::max(made.max_error, error);
  }
  made.nmse = squares > 0 ? errors / squares : errors;
  return made;
}

}  // namespace ptxgen::cli
