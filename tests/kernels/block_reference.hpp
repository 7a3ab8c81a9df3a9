// tests/kernels/block_reference.hpp - block formats value by value, from their definition
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "ptxgen/kernels/element_type.hpp"

namespace ptxgen::test {

inline constexpr ElementType kBlockTypes[] = {
    ElementType::q4_0, ElementType::q4_1, ElementType::q5_0, ElementType::q5_1, ElementType::q8_0,
    ElementType::q8_1, ElementType::q4_k, ElementType::q5_k, ElementType::q6_k};

/// Where a block has f16 fields, in bytes.
[[nodiscard]] std::vector<std::size_t> half_offsets(ElementType type);

/// The bits of a value that is rounded to nearest even: of an f16 with (5, 10), of a bf16 with
/// (8, 7). NaN is 0x7fff.
[[nodiscard]] std::uint16_t rounded_bits(double value, int exponent_bits, int fraction_bits);
[[nodiscard]] inline std::uint16_t half_bits(double value) { return rounded_bits(value, 5, 10); }
[[nodiscard]] inline std::uint16_t bfloat_bits(double value) { return rounded_bits(value, 8, 7); }

/// The values of blocks, as bits of f32; NaN is 0x7fffffff.
[[nodiscard]] std::vector<std::uint32_t> expected_values(ElementType type,
                                                         std::span<const std::byte> blocks);

/// The blocks of q4_0, q8_0 or q8_1 of values.
[[nodiscard]] std::vector<std::byte> expected_blocks(ElementType type,
                                                     std::span<const float> values);

using Random = std::mt19937_64;

/// Random bytes; every second block has f16 fields that are zeros, subnormal, infinite, NaN or
/// the largest, and each eighth block bytes of all zeros or all ones.
[[nodiscard]] std::vector<std::byte> random_blocks(ElementType type, std::size_t count,
                                                   Random& random);

}  // namespace ptxgen::test
