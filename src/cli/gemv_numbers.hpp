// src/cli/gemv_numbers.hpp - how far a result of ptxgen gemv is off
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ptxgen/kernels/gemv.hpp"

namespace ptxgen::cli {

/// To see whether two runs had the same text, nothing more: "fnv1a64:0123456789abcdef".
[[nodiscard]] std::string hash_of(std::string_view text);

struct Comparison {
  double nmse = 0;       ///< sum of squared errors / sum of squares of the reference
  double max_error = 0;  ///< largest |y - reference|
  double bound = 0;      ///< what is allowed where the error is nearest to, or beyond, its bound
  double worst = 0;      ///< the largest error / bound
  std::uint64_t outside = 0;
};
[[nodiscard]] Comparison compare(std::span<const float> y, const GemvReference& reference,
                                 std::uint64_t roundings);

}  // namespace ptxgen::cli
