// src/support/random_values.hpp - inputs for kernels, the same on every host
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptxgen::inline v0 {

/// Numbers in [-1, 1) with 24 bits: of each seed another sequence (splitmix64).
[[nodiscard]] std::vector<float> random_values(std::size_t count, std::uint64_t seed);

}  // namespace ptxgen::inline v0
