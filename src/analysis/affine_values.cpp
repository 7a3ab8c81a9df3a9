// src/analysis/affine_values.cpp - integer helpers for affine forms
#include "analysis/affine_values.hpp"

#include <algorithm>

namespace ptxgen::inline v0::analysis {

using ptx::Modifier;

std::optional<std::uint64_t> apply(const AffineSymbol& s, std::span<const std::uint64_t> x,
                                   std::span<const unsigned> bits) noexcept {
  const auto as_signed = [&](std::size_t i) { return signed_bits(x[i], bits[i]); };
  // a < b
  const auto below = [&](std::size_t i, std::size_t j) {
    return s.is_signed ? as_signed(i) < as_signed(j) : x[i] < x[j];
  };
  switch (s.operation) {
    case AffineOperation::Quotient:
      return x[0] / x[1];
    case AffineOperation::Remainder:
      return x[0] % x[1];
    case AffineOperation::Minimum:
      return below(1, 0) ? x[1] : x[0];
    case AffineOperation::Maximum:
      return below(0, 1) ? x[1] : x[0];
    case AffineOperation::And:
      return x[0] & x[1];
    case AffineOperation::Or:
      return x[0] | x[1];
    case AffineOperation::Xor:
      return x[0] ^ x[1];
    case AffineOperation::ShiftLeft:
      return x[1] >= bits[0] ? 0 : x[0] << x[1];
    case AffineOperation::ShiftRight:
      if (!s.is_signed) return x[1] >= bits[0] ? 0 : x[0] >> x[1];
      return static_cast<std::uint64_t>(as_signed(0) >> std::min<std::uint64_t>(x[1], bits[0] - 1));
    case AffineOperation::Compare:
      switch (s.comparison) {
        case Modifier::lt:
          return below(0, 1);
        case Modifier::le:
          return !below(1, 0);
        case Modifier::eq:
          return x[0] == x[1];
        case Modifier::ne:
          return x[0] != x[1];
        default:
          return std::nullopt;
      }
    case AffineOperation::Select:
      return x[0] != 0 ? x[1] : x[2];
    case AffineOperation::None:
      break;
  }
  return std::nullopt;
}

}  // namespace ptxgen::inline v0::analysis
