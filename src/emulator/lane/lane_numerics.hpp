// src/emulator/lane/lane_numerics.hpp - what the floating-point rows of one lane share
#pragma once

#include "emulator/lane/lane.hpp"
#include "emulator/lane/numerics.hpp"

namespace ptxgen::inline v0::emulator {

/// The rounding of a row's modifier; to nearest without one.
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

using ptx::extended;
using ptx::integer_width;
using ptx::is_signed;
using ptx::low_bits;

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
