// src/ptx/semantics/compare.hpp - what comparison operators of setp and set mean
#pragma once

#include "ptx/semantics/bits.hpp"

namespace ptxgen::inline v0::ptx {

/// How two values compare. Unordered: one of them is a NaN.
enum class Ordering : std::uint8_t { Less, Equal, Greater, Unordered };

/// Ordering of two integers.
[[nodiscard]] constexpr Ordering ordering(std::uint64_t a, std::uint64_t b, Type type) noexcept {
  const std::uint64_t x = extended(a, type);
  const std::uint64_t y = extended(b, type);
  if (x == y) return Ordering::Equal;
  const bool less =
      is_signed(type) ? static_cast<std::int64_t>(x) < static_cast<std::int64_t>(y) : x < y;
  return less ? Ordering::Less : Ordering::Greater;
}

/// Whether a comparison operator holds for values of that ordering.
[[nodiscard]] constexpr bool holds(Modifier comparison, Ordering ordering) noexcept {
  const bool less = ordering == Ordering::Less;
  const bool equal = ordering == Ordering::Equal;
  const bool greater = ordering == Ordering::Greater;
  const bool unordered = ordering == Ordering::Unordered;
  switch (comparison) {
    case Modifier::eq:
      return equal;
    case Modifier::ne:
      return less || greater;
    case Modifier::lt:
    case Modifier::lo:
      return less;
    case Modifier::le:
    case Modifier::ls:
      return less || equal;
    case Modifier::gt:
    case Modifier::hi:
      return greater;
    case Modifier::ge:
    case Modifier::hs:
      return greater || equal;
    case Modifier::equ:
      return equal || unordered;
    case Modifier::neu:
      return !equal;
    case Modifier::ltu:
      return less || unordered;
    case Modifier::leu:
      return !greater;
    case Modifier::gtu:
      return greater || unordered;
    case Modifier::geu:
      return !less;
    case Modifier::num:
      return !unordered;
    case Modifier::nan:
      return unordered;
    default:
      return false;
  }
}

/// The operator that holds for b and a where `comparison` holds for a and b.
[[nodiscard]] constexpr Modifier mirrored(Modifier comparison) noexcept {
  switch (comparison) {
    case Modifier::lt:
      return Modifier::gt;
    case Modifier::le:
      return Modifier::ge;
    case Modifier::gt:
      return Modifier::lt;
    case Modifier::ge:
      return Modifier::le;
    case Modifier::lo:
      return Modifier::hi;
    case Modifier::ls:
      return Modifier::hs;
    case Modifier::hi:
      return Modifier::lo;
    case Modifier::hs:
      return Modifier::ls;
    default:
      return comparison;
  }
}

/// The result of a comparison combined with the predicate source; the result without an operator.
[[nodiscard]] constexpr bool combined(Modifier boolean, bool value, bool with) noexcept {
  switch (boolean) {
    case Modifier::and_:
      return value && with;
    case Modifier::or_:
      return value || with;
    case Modifier::xor_:
      return value != with;
    default:
      return value;
  }
}

/// What `set` writes where the comparison holds, by its result type (of one element).
[[nodiscard]] constexpr std::uint64_t set_true(Type type) noexcept {
  switch (type) {
    case Type::f16:
    case Type::f16x2:
      return 0x3c00;
    case Type::bf16:
    case Type::bf16x2:
      return 0x3f80;
    case Type::f32:
      return 0x3f80'0000;
    case Type::u16:
    case Type::s16:
      return 0xffff;
    default:
      return 0xffff'ffff;
  }
}

}  // namespace ptxgen::inline v0::ptx
