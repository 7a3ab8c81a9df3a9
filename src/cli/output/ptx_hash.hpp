// src/cli/commands/gemv_numbers.hpp - the error of a result of ptxgen gemv
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

/// A hash to compare the texts of two runs: "fnv1a64:0123456789abcdef".
[[nodiscard]] std::string hash_of(std::string_view text);

struct Comparison {
  double nmse = 0;       ///< sum of squared errors / sum of squares of the reference
  double max_error = 0;  ///< largest |y - reference|
  double bound = 0;      ///< the bound of the element with the largest error / bound
  double worst = 0;      ///< the largest error / bound
  std::uint64_t outside = 0;
};
/// `y` has the values on the device, of that type; the bound includes the last rounding.
[[nodiscard]] Comparison compare(std::span<const float> y, ElementType type,
                                 const GemvReference& reference, std::uint64_t roundings);

/// Random elements of a type in [-1, 1), as their bits.
[[nodiscard]] std::vector<std::byte> random_elements(std::uint64_t count, ElementType type,
                                                     std::uint64_t seed);
/// The values of elements that are given as their bits.
[[nodiscard]] std::vector<float> values_of(std::span<const std::byte> elements, ElementType type);

}  // namespace ptxgen::cli
