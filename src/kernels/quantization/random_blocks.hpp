// src/kernels/quantization/random_blocks.hpp - blocks for tests and benchmarks
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ptxgen/kernels/element_type.hpp"

namespace ptxgen::inline v0 {

/// Blocks for `values` values of a block format: random integers, and f16 fields such that values
/// are about between low and high. Determined by the seed.
[[nodiscard]] std::vector<std::byte> random_blocks(ElementType type, std::uint64_t values,
                                                   double low, double high, std::uint64_t seed);

}  // namespace ptxgen::inline v0
