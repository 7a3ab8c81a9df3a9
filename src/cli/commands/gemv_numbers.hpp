// src/cli/commands/gemv_numbers.hpp - how far a result of ptxgen gemv is off
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/kernels/gemv/gemv.hpp"
#include "ptxgen/kernels/gemv/plan.hpp"

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
/// `y` is what the device holds, of that type: what its last rounding may add is in the bound.
[[nodiscard]] Comparison compare(std::span<const float> y, GemvType type,
                                 const GemvReference& reference, std::uint64_t roundings);

/// Random elements of a type in [-1, 1), as their bits.
[[nodiscard]] std::vector<std::byte> random_elements(std::uint64_t count, GemvType type,
                                                     std::uint64_t seed);
/// The values of elements that are given as their bits.
[[nodiscard]] std::vector<float> values_of(std::span<const std::byte> elements, GemvType type);

}  // namespace ptxgen::cli
