// src/runtime/launch/random_operands.hpp - random operands of a described kernel
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ptxgen/kernels/description.hpp"

namespace ptxgen::inline v0 {

/// Elements of an operand in memory, of values in the range of its description. Equal seeds give
/// equal elements.
[[nodiscard]] std::vector<std::byte> random_elements(ElementType type, std::uint64_t count,
                                                     const ArgumentInfo& info, std::uint64_t seed);
/// The same of repacked rows, `count` bytes.
[[nodiscard]] std::vector<std::byte> random_elements(const RepackedRows& rows, std::uint64_t count,
                                                     const ArgumentInfo& info, std::uint64_t seed);
/// A scalar operand, as its type holds it.
[[nodiscard]] double random_scalar(const ArgumentInfo& info, std::uint64_t seed);

/// `term_magnitudes` of the values of blocks; none for other types.
[[nodiscard]] std::vector<double> magnitudes_of(ElementType type,
                                                std::span<const std::byte> elements);

/// What buffers of bytes are written from.
[[nodiscard]] inline std::span<const std::uint8_t> as_u8(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

}  // namespace ptxgen::inline v0
