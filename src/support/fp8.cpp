// src/support/fp8.cpp - 8-bit floats on the host
#include "support/fp8.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ptxgen::inline v0 {

namespace {

constexpr int kFractionBits = 3;
constexpr int kBias = 7;
constexpr int kMinExponent = 1 - kBias;
constexpr float kLargest = 448;
constexpr std::uint8_t kFp8Nan = 0x7f;

}  // namespace

float e4m3_to_float(std::uint8_t bits) noexcept {
  const int magnitude = bits & 0x7f;
  if (magnitude == kFp8Nan) return std::numeric_limits<float>::quiet_NaN();
  const int biased = magnitude >> kFractionBits;
  const int fraction = magnitude & ((1 << kFractionBits) - 1);
  const int significand = biased == 0 ? fraction : fraction | 1 << kFractionBits;
  const float value =
      std::ldexp(static_cast<float>(significand), std::max(biased, 1) - kBias - kFractionBits);
  return (bits & 0x80) != 0 ? -value : value;
}

std::uint8_t float_to_e4m3(float value) noexcept {
  if (std::isnan(value)) return kFp8Nan;
  const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const float magnitude = std::min(std::fabs(value), kLargest);
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), kMinExponent);
  // In units of the last place, of which a normal number has 8 to 15.
  const auto units =
      static_cast<int>(std::nearbyint(std::ldexp(magnitude, kFractionBits - exponent)));
  // A carry into the exponent is one code more.
  const int code = (exponent - kMinExponent) * (1 << kFractionBits) + units;
  return static_cast<std::uint8_t>(sign | std::min(code, kFp8Nan - 1));
}

}  // namespace ptxgen::inline v0
