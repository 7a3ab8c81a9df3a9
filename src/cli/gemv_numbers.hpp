// src/cli/gemv_numbers.hpp - inputs of ptxgen gemv, and how far its result may be off
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/kernels/gemv.hpp"

namespace ptxgen::cli {

/// Numbers in [-1, 1) with 24 bits, the same on every host.
[[nodiscard]] std::vector<float> random_values(std::size_t count, std::uint64_t seed);

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
