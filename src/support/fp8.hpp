// src/support/fp8.hpp - 8-bit floats on the host
#pragma once

#include <cstdint>

namespace ptxgen::inline v0 {

/// The value of an e4m3 given as its bits: exact. Four bits of exponent, three of fraction, no
/// infinities; the topmost code of each sign is NaN.
[[nodiscard]] float e4m3_to_float(std::uint8_t bits) noexcept;
/// The e4m3 nearest to a value, ties to even; what is larger than 448, the largest of them, becomes
/// it, as `cvt.satfinite` does; every NaN becomes 0x7f.
[[nodiscard]] std::uint8_t float_to_e4m3(float value) noexcept;

}  // namespace ptxgen::inline v0
