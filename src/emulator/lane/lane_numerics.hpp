// src/emulator/lane/lane_numerics.hpp - what the floating-point rows of one lane share
#pragma once

#include "emulator/lane/lane.hpp"
#include "emulator/lane/numerics.hpp"

namespace ptxgen::inline v0::emulator {

/// The rounding that a row's word asks for; to nearest without one.
constexpr numerics::Rounding rounding_of(ptx::Modifier word) noexcept {
  using numerics::Rounding;
  using ptx::Modifier;
  switch (word) {
    case Modifier::rz:
    case Modifier::rzi:
      return Rounding::Zero;
    case Modifier::rm:
    case Modifier::rmi:
      return Rounding::Down;
    case Modifier::rp:
    case Modifier::rpi:
      return Rounding::Up;
    case Modifier::rna:
      return Rounding::NearestAway;
    default:
      return Rounding::Nearest;
  }
}

/// Integer types in registers: width in bits, and whether signed.
constexpr unsigned integer_width(ptx::Type type) noexcept {
  using ptx::Type;
  switch (type) {
    case Type::u8:
    case Type::s8:
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
constexpr bool is_signed(ptx::Type type) noexcept {
  using ptx::Type;
  return type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64;
}
/// The lowest `width` bits.
constexpr std::uint64_t cut_to(std::uint64_t bits, unsigned width) noexcept {
  return width >= 64 ? bits : bits & ((std::uint64_t{1} << width) - 1);
}
/// An integer register's value, sign or zero extended to 64 bits.
constexpr std::uint64_t extended(std::uint64_t bits, ptx::Type type) noexcept {
  const unsigned width = integer_width(type);
  const std::uint64_t value = cut_to(bits, width);
  if (!is_signed(type) || (value >> (width - 1) & 1) == 0) return value;
  return value | ~cut_to(~std::uint64_t{0}, width);
}

/// Element number `index` of a register that holds one or two of a format.
template <class F>
constexpr typename F::Bits element(std::uint64_t bits, int index = 0) noexcept {
  return static_cast<typename F::Bits>(bits >> (index * F::kWidth % 64));
}

/// Calls `make.template operator()<F, lanes>()` for the format and the number of elements of a
/// floating-point type; nullptr for another type.
template <class Make>
LaneFunction with_format(ptx::Type type, Make make) {
  using ptx::Type;
  switch (type) {
    case Type::f16:
      return make.template operator()<numerics::F16, 1>();
    case Type::f16x2:
      return make.template operator()<numerics::F16, 2>();
    case Type::bf16:
      return make.template operator()<numerics::BF16, 1>();
    case Type::bf16x2:
      return make.template operator()<numerics::BF16, 2>();
    case Type::f32:
      return make.template operator()<numerics::F32, 1>();
    case Type::f32x2:
      return make.template operator()<numerics::F32, 2>();
    case Type::f64:
      return make.template operator()<numerics::F64, 1>();
    default:
      return nullptr;
  }
}

}  // namespace ptxgen::inline v0::emulator
