// src/ptx/semantics/bits.hpp - integers as the bits of registers
#pragma once

#include <algorithm>
#include <cstdint>

#include "ptxgen/ptx/types.hpp"

namespace ptxgen::inline v0::ptx {

/// The lowest `width` bits.
[[nodiscard]] constexpr std::uint64_t low_bits(std::uint64_t bits, unsigned width) noexcept {
  return width >= 64 ? bits : bits & ((std::uint64_t{1} << width) - 1);
}

/// The lowest `width` bits, sign or zero extended to 64. `width` is at least 1.
[[nodiscard]] constexpr std::uint64_t extended(std::uint64_t bits, unsigned width,
                                               bool with_sign) noexcept {
  const std::uint64_t value = low_bits(bits, width);
  if (!with_sign || width >= 64 || (value >> (width - 1) & 1) == 0) return value;
  return value | ~low_bits(~std::uint64_t{0}, width);
}

/// Width in bits of an integer type of 8 to 64 bits, untyped ones included; 64 for other types.
[[nodiscard]] constexpr unsigned integer_width(Type type) noexcept {
  switch (type) {
    case Type::u8:
    case Type::s8:
    case Type::b8:
      return 8;
    case Type::u16:
    case Type::s16:
    case Type::b16:
      return 16;
    case Type::u32:
    case Type::s32:
    case Type::b32:
      return 32;
    default:
      return 64;
  }
}

/// Whether it is a signed integer type of 8 to 64 bits.
[[nodiscard]] constexpr bool is_signed(Type type) noexcept {
  return type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64;
}

/// The value of an integer of that type, sign or zero extended to 64 bits.
[[nodiscard]] constexpr std::uint64_t extended(std::uint64_t bits, Type type) noexcept {
  return extended(bits, integer_width(type), is_signed(type));
}

/// A value of 64 bits, signed or not, clamped to an integer of `width` bits; its bits.
[[nodiscard]] constexpr std::uint64_t clamped(std::uint64_t value, bool from_signed, unsigned width,
                                              bool to_signed) noexcept {
  const std::uint64_t top = std::uint64_t{1} << (width - 1);
  const std::uint64_t max = to_signed ? top - 1 : low_bits(~std::uint64_t{0}, width);
  if (from_signed && static_cast<std::int64_t>(value) < 0)
    return to_signed ? low_bits(0 - std::min(0 - value, top), width) : 0;
  return std::min(value, max);
}

}  // namespace ptxgen::inline v0::ptx
