// src/emulator/lane/approximations.cpp - the .approx and .full instructions
#include "emulator/lane/approximations.hpp"

#include <cmath>

namespace ptxgen::inline v0::emulator::numerics {
namespace {

template <class Function>
u32 rounded(u32 a, bool ftz, Function function) noexcept {
  const double x = as_host<F32>(flushed<F32>(a, ftz));
  return flushed<F32>(as_bits<F32>(static_cast<float>(function(x))), ftz);
}

constexpr u64 kUpperHalf = 0xffffffff00000000;

/// Of an operand or a result: its upper 32 bits, subnormals flushed, NaNs the one NaN.
u64 coarse(u64 bits) noexcept {
  return is_nan<F64>(bits) ? F64::kNan : flushed<F64>(bits) & kUpperHalf;
}

}  // namespace

u32 divide_approximately(u32 a, u32 b, bool full, bool ftz) noexcept {
  constexpr u32 kLargeDivisor = 0x7e800000;  // 2^126
  const u32 x = flushed<F32>(a, ftz);
  const u32 y = flushed<F32>(b, ftz);
  const u32 divisor = y & F32::kMagnitude;
  if (!full && divisor > kLargeDivisor && divisor < F32::kInfinity && !is_nan<F32>(x)) {
    return is_infinite<F32>(x) ? F32::kNan : (x ^ y) & F32::kSign;
  }
  const double value = static_cast<double>(as_host<F32>(x)) / static_cast<double>(as_host<F32>(y));
  return flushed<F32>(as_bits<F32>(static_cast<float>(value)), ftz);
}

u32 reciprocal_approximately(u32 a, bool ftz) noexcept {
  return rounded(a, ftz, [](double x) { return 1 / x; });
}
u32 square_root_approximately(u32 a, bool ftz) noexcept {
  return rounded(a, ftz, [](double x) { return std::sqrt(x); });
}
u32 reciprocal_root_approximately(u32 a, bool ftz) noexcept {
  return rounded(a, ftz, [](double x) { return 1 / std::sqrt(x); });
}
u32 sine_approximately(u32 a, bool ftz) noexcept {
  return rounded(a, ftz, [](double x) { return std::sin(x); });
}
u32 cosine_approximately(u32 a, bool ftz) noexcept {
  return rounded(a, ftz, [](double x) { return std::cos(x); });
}
u32 logarithm_approximately(u32 a, bool ftz) noexcept {
  return rounded(a, ftz, [](double x) { return std::log2(x); });
}
u32 power_of_two_approximately(u32 a, bool ftz) noexcept {
  return rounded(a, ftz, [](double x) { return std::exp2(x); });
}
u32 tangent_approximately(u32 a) noexcept {
  return rounded(a, false, [](double x) { return std::tanh(x); });
}

u64 reciprocal_approximately(u64 a) noexcept {
  return coarse(as_bits<F64>(1 / as_host<F64>(coarse(a))));
}
u64 reciprocal_root_approximately(u64 a, bool ftz) noexcept {
  if (!ftz) return as_bits<F64>(1 / std::sqrt(as_host<F64>(a)));
  return coarse(as_bits<F64>(1 / std::sqrt(as_host<F64>(coarse(a)))));
}

}  // namespace ptxgen::inline v0::emulator::numerics
