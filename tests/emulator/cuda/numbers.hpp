// tests/emulator/cuda/numbers.hpp - narrow floats and casts for host references
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace ptxgen::test {

[[nodiscard]] constexpr int as_int(std::size_t value) noexcept { return static_cast<int>(value); }
[[nodiscard]] constexpr std::uint32_t as_u32(std::size_t value) noexcept {
  return static_cast<std::uint32_t>(value);
}
/// For indices that are never negative.
template <class T>
[[nodiscard]] constexpr std::size_t at(T value) noexcept {
  return static_cast<std::size_t>(value);
}

/// A sign, `exponent` bits and `mantissa` bits with infinities and NaNs in the last exponent.
struct Format {
  int exponent = 5;
  int mantissa = 10;
};
inline constexpr Format kHalf{5, 10}, kBfloat{8, 7}, kE4m3{4, 3}, kE5m2{5, 2};

/// The number that the bits stand for; not for the last exponent.
[[nodiscard]] inline double decoded(std::uint32_t bits, Format f) {
  const std::uint32_t fraction = bits & ((1u << f.mantissa) - 1);
  const std::uint32_t field = bits >> f.mantissa & ((1u << f.exponent) - 1);
  const int min = 2 - (1 << (f.exponent - 1));
  const double size = field == 0 ? std::ldexp(fraction, min - f.mantissa)
                                 : std::ldexp(fraction + (1u << f.mantissa),
                                              min + static_cast<int>(field) - 1 - f.mantissa);
  return (bits >> (f.mantissa + f.exponent) & 1) != 0 ? -size : size;
}

enum class Round : std::uint8_t { Nearest, Zero };

/// The bits of a finite number, rounded once; beyond the largest finite number the field runs on
/// into infinity and further, for the caller to clamp.
[[nodiscard]] inline std::uint32_t encoded(double value, Format f, Round round = Round::Nearest) {
  const std::uint32_t sign = std::signbit(value) ? 1u << (f.mantissa + f.exponent) : 0;
  const double size = std::abs(value);
  if (size == 0) return sign;
  const int min = 2 - (1 << (f.exponent - 1));
  int scale = std::ilogb(size);
  if (scale < min) scale = min;
  const double scaled = std::ldexp(size, f.mantissa - scale);
  auto steps = static_cast<std::uint32_t>(round == Round::Zero ? std::trunc(scaled)
                                                               : std::nearbyint(scaled));
  // Rounding up into the next power of two carries into the exponent by itself.
  return sign | (steps + (static_cast<std::uint32_t>(scale - min) << f.mantissa));
}

[[nodiscard]] inline std::uint16_t half_bits(double value) {
  return static_cast<std::uint16_t>(encoded(value, kHalf));
}
[[nodiscard]] inline double half_value(std::uint16_t bits) { return decoded(bits, kHalf); }
[[nodiscard]] inline std::uint16_t bfloat_bits(double value) {
  return static_cast<std::uint16_t>(encoded(value, kBfloat));
}
[[nodiscard]] inline double bfloat_value(std::uint16_t bits) { return decoded(bits, kBfloat); }

}  // namespace ptxgen::test
