// src/analysis/affine_forms.hpp - arithmetic of affine forms and of ranges
#pragma once

#include <limits>

#include "ptxgen/analysis/affine.hpp"

namespace ptxgen::inline v0::analysis {

/// The low bits, filled with zeros.
[[nodiscard]] inline std::uint64_t pattern(std::uint64_t value, unsigned bits) noexcept {
  return bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}
/// The sign-extended low bits: how coefficients and constants are kept.
[[nodiscard]] inline std::int64_t signed_bits(std::uint64_t value, unsigned bits) noexcept {
  if (bits >= 64) return static_cast<std::int64_t>(value);
  // A predicate is 0 or 1, not 0 or -1.
  if (bits == 1) return static_cast<std::int64_t>(value & 1);
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  const std::uint64_t low = pattern(value, bits);
  return static_cast<std::int64_t>((low ^ sign) - sign);
}

[[nodiscard]] AffineForm constant_form(std::int64_t value, unsigned bits);
[[nodiscard]] AffineForm symbol_form(std::uint32_t symbol, unsigned bits);

/// a + factor * b in the width of a.
[[nodiscard]] AffineForm sum(const AffineForm& a, const AffineForm& b, std::int64_t factor = 1);
[[nodiscard]] AffineForm scaled(const AffineForm& a, std::int64_t factor);
/// Nothing where a term would have more than three factors.
[[nodiscard]] std::optional<AffineForm> product(const AffineForm& a, const AffineForm& b);
/// The same value in another width: cut off, or widened as an integer.
[[nodiscard]] AffineForm resized(const AffineForm& a, unsigned bits);
/// Forms that grow beyond this become symbols.
[[nodiscard]] bool too_big(const AffineForm& form) noexcept;
/// Adds the assumptions of `from`.
void assume(AffineForm& form, const AffineForm& from);
void assume(AffineForm& form, std::uint32_t assumption);

/// The number of low bits that are zero whatever the symbols are; the width for a zero.
[[nodiscard]] unsigned zero_bits(const AffineForm& form) noexcept;
/// The greatest divisor of all coefficients (not the constant); 0 without terms.
[[nodiscard]] std::uint64_t common_factor(const AffineForm& form) noexcept;

[[nodiscard]] AffineRange operator+(const AffineRange& a, const AffineRange& b) noexcept;
[[nodiscard]] AffineRange operator*(const AffineRange& a, const AffineRange& b) noexcept;
[[nodiscard]] inline AffineRange exactly(std::int64_t value) noexcept {
  return {true, value, value};
}
/// All numbers of a width; unknown for 64 bits.
[[nodiscard]] AffineRange range_of_width(unsigned bits, bool is_signed) noexcept;
[[nodiscard]] inline bool within(const AffineRange& inner, const AffineRange& outer) noexcept {
  return inner.known && outer.known && inner.min >= outer.min && inner.max <= outer.max;
}

/// nothing on overflow.
[[nodiscard]] std::optional<std::int64_t> checked_sum(std::int64_t a, std::int64_t b) noexcept;
[[nodiscard]] std::optional<std::int64_t> checked_product(std::int64_t a, std::int64_t b) noexcept;
/// Rounded down; the divisor is above 0.
[[nodiscard]] constexpr std::int64_t floor_quotient(std::int64_t a, std::int64_t b) noexcept {
  return a / b - (a % b < 0 ? 1 : 0);
}

}  // namespace ptxgen::inline v0::analysis
