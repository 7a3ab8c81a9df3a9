// src/support/half.hpp - 16-bit floats on the host
#pragma once

#include <cstdint>

namespace ptxgen::inline v0 {

/// The value of an f16 given as its bits: exact. NaN stays NaN.
[[nodiscard]] float f16_to_float(std::uint16_t bits) noexcept;
/// The f16 nearest to a value, ties to even; beyond the range infinity; every NaN becomes 0x7fff.
[[nodiscard]] std::uint16_t float_to_f16(float value) noexcept;
/// The same for bf16, the upper half of an f32.
[[nodiscard]] float bf16_to_float(std::uint16_t bits) noexcept;
[[nodiscard]] std::uint16_t float_to_bf16(float value) noexcept;

}  // namespace ptxgen::inline v0
