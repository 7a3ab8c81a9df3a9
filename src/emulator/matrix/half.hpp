// src/emulator/matrix/half.hpp - f16 to double and back
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ptxgen::inline v0::emulator {

/// The value of f16 bits.
[[nodiscard]] inline double from_half(std::uint32_t bits) noexcept {
  const std::uint32_t magnitude = bits & 0x7fff;
  const float scaled = std::bit_cast<float>(magnitude << 13);
  // Too small by 2^112 for every finite value, subnormals too.
  double value = static_cast<double>(scaled) * 0x1p112;
  if (magnitude > 0x7c00) value = std::numeric_limits<double>::quiet_NaN();
  if (magnitude == 0x7c00) value = std::numeric_limits<double>::infinity();
  return (bits & 0x8000) != 0 ? -value : value;
}

/// Rounded to nearest even; NaN is 0x7fff.
[[nodiscard]] inline std::uint64_t to_half(double value) noexcept {
  if (std::isnan(value)) return 0x7fff;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t sign = bits >> 48 & 0x8000;
  const double magnitude = std::fabs(value);
  if (magnitude >= 65520.0) return sign | 0x7c00;
  if (magnitude < 0x1p-14) {
    // Adding 2^28 leaves multiples of 2^-24, the smallest subnormal, rounded to nearest even.
    const double rounded = magnitude + 0x1p28;
    return sign | (std::bit_cast<std::uint64_t>(rounded) & 0x7ff);
  }
  const std::uint64_t kept = std::bit_cast<std::uint64_t>(magnitude);
  const std::uint64_t rounded = kept + ((std::uint64_t{1} << 41) - 1) + (kept >> 42 & 1);
  return sign | ((rounded >> 42) - (std::uint64_t{1023 - 15} << 10));
}

}  // namespace ptxgen::inline v0::emulator
