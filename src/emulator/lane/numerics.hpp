// src/emulator/lane/numerics.hpp - exact floating point on bit patterns, every format and rounding
//
// Values are register bits: `Format::Bits`, an unsigned integer. Operations unpack to sign,
// exponent and integer significand, compute exactly (what falls off the end is kept as a sticky
// bit) and round once, so that nothing depends on the host's floating point. Only the `*_nearest`
// functions for f32 and f64 let the host compute; they need its default state, see HostFloatState.
//
// What PTX leaves open, and what is chosen here:
// - Every operation that yields a NaN yields the one NaN of the format: f32 0x7fffffff, f16 and
//   bf16 0x7fff, f64 0xfff8000000000000 (payloads of f64 operands are not kept; cvt.f64.f32 of a
//   NaN keeps sign and payload, and quietens it). abs, neg, copysign and moves work on bits.
// - .ftz flushes a result that is subnormal after it was rounded as without .ftz.
// - .sat and .relu turn -0 into +0.
// - The NaN that marks a value out of bounds (fma.oob) is 0x7ff7 in f16 and bf16.
#pragma once

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "ptx/semantics/compare.hpp"

namespace ptxgen::inline v0::emulator::numerics {

__extension__ using u128 = unsigned __int128;
using u64 = std::uint64_t;
using u32 = std::uint32_t;

/// While it lives, this thread computes with the default floating-point state (to nearest, no
/// flushing), whatever the program around us has set.
class HostFloatState {
 public:
  HostFloatState() noexcept {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~HostFloatState() { std::fesetenv(&saved_); }
  HostFloatState(const HostFloatState&) = delete;
  HostFloatState& operator=(const HostFloatState&) = delete;

 private:
  std::fenv_t saved_{};
};

enum class Rounding : std::uint8_t { Nearest, Zero, Down, Up, NearestAway };

/// What the bits above the largest finite value mean.
enum class Specials : std::uint8_t {
  Ieee,     ///< infinity, NaNs above it
  NanOnly,  ///< the topmost code is NaN, no infinity (e4m3)
  None,     ///< every code is finite (e2m3, e3m2, e2m1)
};

template <int exponent_bits, int fraction_bits, u64 nan, Specials specials = Specials::Ieee>
struct Format {
  static constexpr int kExponentBits = exponent_bits;
  static constexpr int kFractionBits = fraction_bits;
  static constexpr int kWidth = 1 + exponent_bits + fraction_bits;
  static constexpr Specials kSpecials = specials;
  using Bits = std::conditional_t<(kWidth > 32), std::uint64_t,
                                  std::conditional_t<(kWidth > 16), std::uint32_t, std::uint16_t>>;
  static constexpr int kBias = (1 << (exponent_bits - 1)) - 1;
  static constexpr int kMinExponent = 1 - kBias;  ///< of a normal number
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (kWidth - 1));
  static constexpr Bits kMagnitude = static_cast<Bits>(kSign - 1);
  static constexpr Bits kMinNormal = static_cast<Bits>(Bits{1} << fraction_bits);
  /// Infinity, or what would be infinity in a format without.
  static constexpr Bits kInfinity =
      static_cast<Bits>(((Bits{1} << exponent_bits) - 1) << fraction_bits);
  static constexpr Bits kLargest =
      static_cast<Bits>(specials == Specials::Ieee      ? kInfinity - 1
                        : specials == Specials::NanOnly ? kMagnitude - 1
                                                        : kMagnitude);
  static constexpr Bits kNan = static_cast<Bits>(nan);  ///< the one that operations yield
  static constexpr Bits kOne = static_cast<Bits>(Bits{kBias} << fraction_bits);
  /// An integer that holds a product of two significands, and two spare bits or more.
  using Work = std::conditional_t<(fraction_bits > 23), u128, u64>;
};

using F16 = Format<5, 10, 0x7fff>;
using BF16 = Format<8, 7, 0x7fff>;
using F32 = Format<8, 23, 0x7fffffff>;
using F64 = Format<11, 52, 0xfff8000000000000>;
using TF32 = Format<8, 10, 0x3ffff>;  ///< the upper 19 bits of an f32
using E5M2 = Format<5, 2, 0x7f>;
using E4M3 = Format<4, 3, 0x7f, Specials::NanOnly>;
using E3M2 = Format<3, 2, 0x1f, Specials::None>;  ///< a NaN becomes the largest value
using E2M3 = Format<2, 3, 0x1f, Specials::None>;
using E2M1 = Format<2, 1, 0x7, Specials::None>;

/// The NaN by which fma.oob knows a value out of bounds.
inline constexpr std::uint16_t kOutOfBoundsNan = 0x7ff7;

template <class F>
constexpr bool is_nan(typename F::Bits bits) noexcept {
  const auto magnitude = static_cast<typename F::Bits>(bits & F::kMagnitude);
  if constexpr (F::kSpecials == Specials::Ieee) return magnitude > F::kInfinity;
  if constexpr (F::kSpecials == Specials::NanOnly) return magnitude > F::kLargest;
  return false;
}
template <class F>
constexpr bool is_infinite(typename F::Bits bits) noexcept {
  return F::kSpecials == Specials::Ieee && (bits & F::kMagnitude) == F::kInfinity;
}
template <class F>
constexpr bool is_negative(typename F::Bits bits) noexcept {
  return (bits & F::kSign) != 0;
}
template <class F>
constexpr bool is_subnormal(typename F::Bits bits) noexcept {
  const auto magnitude = static_cast<typename F::Bits>(bits & F::kMagnitude);
  return magnitude != 0 && magnitude < F::kMinNormal;
}

/// Subnormals become zero of their sign.
template <class F>
constexpr typename F::Bits flushed(typename F::Bits bits) noexcept {
  return (bits & F::kMagnitude) < F::kMinNormal ? static_cast<typename F::Bits>(bits & F::kSign)
                                                : bits;
}
template <class F>
constexpr typename F::Bits flushed(typename F::Bits bits, bool ftz) noexcept {
  return ftz ? flushed<F>(bits) : bits;
}
/// Clamped to [0, 1]; NaN becomes +0.
template <class F>
constexpr typename F::Bits saturated(typename F::Bits bits) noexcept {
  if (is_negative<F>(bits) || is_nan<F>(bits)) return 0;
  return std::min(bits, F::kOne);
}
template <class F>
constexpr typename F::Bits saturated(typename F::Bits bits, bool sat) noexcept {
  return sat ? saturated<F>(bits) : bits;
}
/// Negative values become +0, NaNs the one NaN.
template <class F>
constexpr typename F::Bits rectified(typename F::Bits bits) noexcept {
  if (is_nan<F>(bits)) return F::kNan;
  return is_negative<F>(bits) ? typename F::Bits{0} : bits;
}
template <class F>
constexpr typename F::Bits rectified(typename F::Bits bits, bool relu) noexcept {
  return relu ? rectified<F>(bits) : bits;
}

template <class Work>
inline constexpr int kTop = static_cast<int>(sizeof(Work) * 8) - 3;  ///< the leading bit's place

constexpr int leading_zeros(u64 value) noexcept { return std::countl_zero(value); }
constexpr int leading_zeros(u128 value) noexcept {
  const auto high = static_cast<u64>(value >> 64);
  return high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(static_cast<u64>(value));
}

enum class Kind : std::uint8_t { Zero, Finite, Infinite, Nan };

/// A number: significand * 2^(exponent - kTop), whose bit kTop is the leading one. Bit 0 also
/// stands for everything below it (sticky).
template <class Work>
struct Number {
  Kind kind = Kind::Zero;
  bool negative = false;
  int exponent = 0;
  Work significand = 0;
};

/// `significand` * 2^`exponent` (significand != 0, below 2^(kTop + 2)), brought to its place.
template <class Work>
constexpr Number<Work> normalised(bool negative, int exponent, Work significand) noexcept {
  const int shift = leading_zeros(significand) - 2;
  if (shift >= 0) {
    significand <<= shift;
  } else {
    significand =
        (significand >> -shift) | static_cast<Work>((significand & ((Work{1} << -shift) - 1)) != 0);
  }
  return {Kind::Finite, negative, exponent + kTop<Work> - shift, significand};
}

template <class F, class Work = typename F::Work>
constexpr Number<Work> unpack(typename F::Bits bits) noexcept {
  const bool negative = is_negative<F>(bits);
  const auto magnitude = static_cast<typename F::Bits>(bits & F::kMagnitude);
  if (magnitude == 0) return {Kind::Zero, negative, 0, 0};
  if (is_nan<F>(bits)) return {Kind::Nan, negative, 0, 0};
  if (is_infinite<F>(bits)) return {Kind::Infinite, negative, 0, 0};
  const int biased = static_cast<int>(magnitude >> F::kFractionBits);
  const Work fraction = magnitude & (F::kMinNormal - 1u);
  if (biased == 0) {
    return normalised<Work>(negative, F::kMinExponent - F::kFractionBits, fraction);
  }
  return {Kind::Finite, negative, biased - F::kBias,
          (fraction | F::kMinNormal) << (kTop<Work> - F::kFractionBits)};
}

/// Whether a magnitude that is above its last place is rounded up.
template <class Work>
constexpr bool rounds_up(Rounding rounding, bool negative, bool odd, Work rest,
                         Work half) noexcept {
  switch (rounding) {
    case Rounding::Nearest:
      return rest > half || (rest == half && odd);
    case Rounding::NearestAway:
      return rest >= half;
    case Rounding::Zero:
      return false;
    case Rounding::Down:
      return negative && rest != 0;
    case Rounding::Up:
      return !negative && rest != 0;
  }
  return false;
}

/// What is left of a magnitude too large for the format.
template <class F>
constexpr typename F::Bits overflowed(Rounding rounding, bool negative, bool satfinite) noexcept {
  const bool away = rounding == Rounding::Nearest || rounding == Rounding::NearestAway ||
                    (rounding == Rounding::Up && !negative) ||
                    (rounding == Rounding::Down && negative);
  if (F::kSpecials != Specials::Ieee || satfinite || !away) return F::kLargest;
  return F::kInfinity;
}

/// How a finite number meets a format: code of the magnitude cut off, and the bits cut off.
template <class Work>
struct Cut {
  u64 code = 0;
  int dropped = 0;  ///< how many bits were cut off, at most kTop + 2
  Work rest = 0;
};
template <class F, class Work>
constexpr Cut<Work> cut(const Number<Work>& number) noexcept {
  int drop = kTop<Work> - F::kFractionBits;
  const bool subnormal = number.exponent < F::kMinExponent;
  if (subnormal) drop += std::min(F::kMinExponent - number.exponent, F::kFractionBits + 2);
  const auto kept = static_cast<u64>(number.significand >> drop);
  const u64 exponent =
      subnormal ? 0 : static_cast<u64>(number.exponent + F::kBias - 1) << F::kFractionBits;
  return {exponent + kept, drop, number.significand & ((Work{1} << drop) - 1)};
}

/// Rounds to the format. `satfinite`: the largest finite value in place of infinity.
template <class F, class Work>
constexpr typename F::Bits pack(const Number<Work>& number, Rounding rounding,
                                bool satfinite = false) noexcept {
  using Bits = typename F::Bits;
  const Bits sign = number.negative ? F::kSign : Bits{0};
  if (number.kind == Kind::Zero) return sign;
  if (number.kind == Kind::Nan) return F::kNan;
  if (number.kind == Kind::Infinite) {
    const bool finite = satfinite || F::kSpecials != Specials::Ieee;
    return static_cast<Bits>(sign | (finite ? F::kLargest : F::kInfinity));
  }
  const auto [low, dropped, rest] = cut<F>(number);
  u64 code = low;
  if (rounds_up<Work>(rounding, number.negative, (code & 1) != 0, rest, Work{1} << (dropped - 1))) {
    ++code;
  }
  if (code > F::kLargest) {
    return static_cast<Bits>(sign | overflowed<F>(rounding, number.negative, satfinite));
  }
  return static_cast<Bits>(sign | static_cast<Bits>(code));
}

/// Stochastic rounding: away from zero if the cut-off bits plus `random` (of `count` bits, aligned
/// at their top) carry.
template <class F, class Work>
constexpr typename F::Bits pack_stochastic(const Number<Work>& number, u32 random, int count,
                                           bool satfinite) noexcept {
  using Bits = typename F::Bits;
  if (number.kind != Kind::Finite) return pack<F>(number, Rounding::Zero, satfinite);
  const auto [low, dropped, rest] = cut<F>(number);
  // `cut` stops dropping once nothing is kept; far below that, fewer bits reach the random ones.
  const int below = F::kMinExponent - number.exponent - (F::kFractionBits + 2);
  const Work tail = rest >> std::clamp(below, 0, kTop<Work>);
  const u64 code = low + static_cast<u64>(((tail >> (dropped - count)) + random) >> count);
  const Bits sign = number.negative ? F::kSign : Bits{0};
  if (code > F::kLargest) {
    return static_cast<Bits>(sign | overflowed<F>(Rounding::Nearest, false, satfinite));
  }
  return static_cast<Bits>(sign | static_cast<Bits>(code));
}

// ---- arithmetic on numbers; the only rounding is the sticky bit ----

/// a + b for a sum that is not zero or has an operand that is not finite; `zero_negative` is the
/// sign of an exact zero.
template <class Work>
constexpr Number<Work> sum(Number<Work> a, Number<Work> b, bool zero_negative) noexcept {
  if (a.kind == Kind::Nan || b.kind == Kind::Nan) return {Kind::Nan, false, 0, 0};
  if (a.kind == Kind::Infinite || b.kind == Kind::Infinite) {
    if (a.kind == b.kind && a.negative != b.negative) return {Kind::Nan, false, 0, 0};
    return a.kind == Kind::Infinite ? a : b;
  }
  if (a.kind == Kind::Zero && b.kind == Kind::Zero) {
    return {Kind::Zero, a.negative == b.negative ? a.negative : zero_negative, 0, 0};
  }
  if (a.kind == Kind::Zero) return b;
  if (b.kind == Kind::Zero) return a;
  if (a.exponent < b.exponent || (a.exponent == b.exponent && a.significand < b.significand)) {
    std::swap(a, b);
  }
  const int shift = std::min(a.exponent - b.exponent, kTop<Work> + 1);
  const Work lost = b.significand & ((Work{1} << shift) - 1);
  const Work smaller = (b.significand >> shift) | static_cast<Work>(lost != 0);
  const Work total = a.negative == b.negative ? a.significand + smaller : a.significand - smaller;
  if (total == 0) return {Kind::Zero, zero_negative, 0, 0};
  return normalised<Work>(a.negative, a.exponent - kTop<Work>, total);
}

template <class F, class Work = typename F::Work>
constexpr Number<Work> product(const Number<Work>& a, const Number<Work>& b) noexcept {
  const bool negative = a.negative != b.negative;
  if (a.kind == Kind::Nan || b.kind == Kind::Nan) return {Kind::Nan, false, 0, 0};
  if (a.kind == Kind::Infinite || b.kind == Kind::Infinite) {
    if (a.kind == Kind::Zero || b.kind == Kind::Zero) return {Kind::Nan, false, 0, 0};
    return {Kind::Infinite, negative, 0, 0};
  }
  if (a.kind == Kind::Zero || b.kind == Kind::Zero) return {Kind::Zero, negative, 0, 0};
  constexpr int kLow = kTop<Work> - F::kFractionBits;  // zero bits below a significand
  const Work significand = (a.significand >> kLow) * (b.significand >> kLow);
  return normalised<Work>(negative, a.exponent + b.exponent - 2 * F::kFractionBits, significand);
}

template <class F, class Work = typename F::Work>
constexpr Number<Work> quotient(const Number<Work>& a, const Number<Work>& b) noexcept {
  const bool negative = a.negative != b.negative;
  if (a.kind == Kind::Nan || b.kind == Kind::Nan) return {Kind::Nan, false, 0, 0};
  if (a.kind == Kind::Infinite) {
    if (b.kind == Kind::Infinite) return {Kind::Nan, false, 0, 0};
    return {Kind::Infinite, negative, 0, 0};
  }
  if (b.kind == Kind::Infinite) return {Kind::Zero, negative, 0, 0};
  if (b.kind == Kind::Zero) {
    if (a.kind == Kind::Zero) return {Kind::Nan, false, 0, 0};
    return {Kind::Infinite, negative, 0, 0};
  }
  if (a.kind == Kind::Zero) return {Kind::Zero, negative, 0, 0};
  constexpr int kLow = kTop<Work> - F::kFractionBits;
  constexpr int kSteps = F::kFractionBits + 4;
  Work rest = a.significand >> kLow;
  const Work divisor = b.significand >> kLow;
  Work digits = 0;
  for (int step = 0; step < kSteps; ++step) {
    digits <<= 1;
    if (rest >= divisor) {
      rest -= divisor;
      digits |= 1;
    }
    rest <<= 1;
  }
  digits = digits << 1 | static_cast<Work>(rest != 0);
  return normalised<Work>(negative, a.exponent - b.exponent - kSteps, digits);
}

template <class F, class Work = typename F::Work>
constexpr Number<Work> square_root(const Number<Work>& a) noexcept {
  if (a.kind == Kind::Nan || (a.negative && a.kind != Kind::Zero)) return {Kind::Nan, false, 0, 0};
  if (a.kind != Kind::Finite) return a;
  // radicand * 2^(2 * half): the root has F::kFractionBits + 3 bits.
  constexpr int kRootBits = F::kFractionBits + 3;
  const bool odd = (a.exponent & 1) != 0;
  const int even = a.exponent - (odd ? 1 : 0);
  constexpr int kShift = kTop<Work> - 2 * (kRootBits - 1);
  const Work radicand = a.significand >> (kShift - (odd ? 1 : 0));
  Work root = 0;
  for (Work bit = Work{1} << (kRootBits - 1); bit != 0; bit >>= 1) {
    const Work trial = root | bit;
    if (trial * trial <= radicand) root = trial;
  }
  const Work digits = root << 1 | static_cast<Work>(root * root != radicand);
  return normalised<Work>(false, even / 2 - kRootBits, digits);
}

// ---- arithmetic on bits ----

template <class F>
constexpr typename F::Bits negated(typename F::Bits bits) noexcept {
  return static_cast<typename F::Bits>(bits ^ F::kSign);
}
template <class F>
constexpr typename F::Bits add(typename F::Bits a, typename F::Bits b, Rounding rounding) noexcept {
  return pack<F>(sum(unpack<F>(a), unpack<F>(b), rounding == Rounding::Down), rounding);
}
template <class F>
constexpr typename F::Bits subtract(typename F::Bits a, typename F::Bits b,
                                    Rounding rounding) noexcept {
  return add<F>(a, negated<F>(b), rounding);
}
template <class F>
constexpr typename F::Bits multiply(typename F::Bits a, typename F::Bits b,
                                    Rounding rounding) noexcept {
  return pack<F>(product<F>(unpack<F>(a), unpack<F>(b)), rounding);
}
template <class F>
constexpr typename F::Bits fused_multiply_add(typename F::Bits a, typename F::Bits b,
                                              typename F::Bits c, Rounding rounding) noexcept {
  return pack<F>(
      sum(product<F>(unpack<F>(a), unpack<F>(b)), unpack<F>(c), rounding == Rounding::Down),
      rounding);
}
template <class F>
constexpr typename F::Bits divide(typename F::Bits a, typename F::Bits b,
                                  Rounding rounding) noexcept {
  return pack<F>(quotient<F>(unpack<F>(a), unpack<F>(b)), rounding);
}
template <class F>
constexpr typename F::Bits square_root(typename F::Bits a, Rounding rounding) noexcept {
  return pack<F>(square_root<F>(unpack<F>(a)), rounding);
}

/// The value of one format in another.
template <class To, class From>
constexpr typename To::Bits convert(typename From::Bits bits, Rounding rounding = Rounding::Nearest,
                                    bool satfinite = false) noexcept {
  return pack<To>(unpack<From, u64>(bits), rounding, satfinite);
}

template <class F>
constexpr typename F::Bits from_integer(u64 magnitude, bool negative, Rounding rounding) noexcept {
  if (magnitude == 0) return 0;
  return pack<F>(normalised<u64>(negative, 0, magnitude), rounding);
}

/// A magnitude rounded to an integer, 2^64-1 standing for everything above it.
struct Integral {
  u64 magnitude = 0;
  bool negative = false;
};
constexpr Integral to_integral(const Number<u64>& number, Rounding rounding) noexcept {
  constexpr int kLeading = kTop<u64>;
  if (number.kind == Kind::Infinite || number.exponent > 63) return {~u64{0}, number.negative};
  if (number.kind != Kind::Finite) return {0, number.negative};
  if (number.exponent >= kLeading) {
    return {number.significand << (number.exponent - kLeading), number.negative};
  }
  const int drop = std::min(kLeading - number.exponent, kLeading + 2);
  u64 magnitude = number.significand >> drop;
  if (rounds_up<u64>(rounding, number.negative, (magnitude & 1) != 0,
                     number.significand & ((u64{1} << drop) - 1), u64{1} << (drop - 1))) {
    ++magnitude;
  }
  return {magnitude, number.negative};
}

/// A float as an integer of `width` bits, clamped to its range; the bits of the result. A NaN is 0,
/// or the topmost bit alone if the source is f64 or the integer has 64 bits.
template <class F>
constexpr u64 to_integer(typename F::Bits bits, Rounding rounding, int width,
                         bool is_signed) noexcept {
  const u64 top = u64{1} << (width - 1);
  if (is_nan<F>(bits)) return F::kWidth == 64 || width == 64 ? top : 0;
  const Integral value = to_integral(unpack<F, u64>(bits), rounding);
  const u64 mask = top | (top - 1);
  if (!is_signed) return value.negative ? 0 : std::min(value.magnitude, mask);
  if (value.negative) return (0 - std::min(value.magnitude, top)) & mask;
  return std::min(value.magnitude, top - 1);
}

/// A float rounded to an integral value of its own format.
template <class F>
constexpr typename F::Bits rounded_to_integral(typename F::Bits bits, Rounding rounding) noexcept {
  if (is_nan<F>(bits)) return F::kNan;
  const Number<u64> number = unpack<F, u64>(bits);
  if (number.kind != Kind::Finite || number.exponent >= F::kFractionBits) return bits;
  const Integral value = to_integral(number, rounding);
  const auto magnitude = from_integer<F>(value.magnitude, false, Rounding::Zero);
  return static_cast<typename F::Bits>(magnitude | (bits & F::kSign));
}

// ---- comparison ----

using ptx::Ordering;

/// A signed key in the order of the values; both zeros are 0.
template <class F>
constexpr std::int64_t order_key(typename F::Bits bits) noexcept {
  const auto magnitude = static_cast<std::int64_t>(bits & F::kMagnitude);
  return is_negative<F>(bits) ? -magnitude : magnitude;
}
template <class F>
constexpr Ordering compared(typename F::Bits a, typename F::Bits b) noexcept {
  if (is_nan<F>(a) || is_nan<F>(b)) return Ordering::Unordered;
  const std::int64_t x = order_key<F>(a);
  const std::int64_t y = order_key<F>(b);
  return x < y ? Ordering::Less : x == y ? Ordering::Equal : Ordering::Greater;
}

/// The smaller or larger one. -0 is below +0; one NaN gives the other operand, or with
/// `propagate_nan` the NaN of the format.
template <class F>
constexpr typename F::Bits extremum(typename F::Bits a, typename F::Bits b, bool larger,
                                    bool propagate_nan) noexcept {
  const bool a_nan = is_nan<F>(a);
  const bool b_nan = is_nan<F>(b);
  if ((a_nan && b_nan) || (propagate_nan && (a_nan || b_nan))) return F::kNan;
  if (a_nan) return b;
  if (b_nan) return a;
  const auto key = [](typename F::Bits bits) noexcept {
    const std::int64_t value = order_key<F>(bits);
    return is_negative<F>(bits) ? value - 1 : value;  // -0 below +0
  };
  return (key(a) < key(b)) != larger ? a : b;
}

// ---- to nearest, by the host ----

template <class F>
using Host = std::conditional_t<(F::kWidth == 64), double, float>;

template <class F>
inline Host<F> as_host(typename F::Bits bits) noexcept {
  return std::bit_cast<Host<F>>(bits);
}
template <class F>
inline typename F::Bits as_bits(Host<F> value) noexcept {
  return value != value ? F::kNan : std::bit_cast<typename F::Bits>(value);
}
template <class F>
inline typename F::Bits add_nearest(typename F::Bits a, typename F::Bits b) noexcept {
  return as_bits<F>(as_host<F>(a) + as_host<F>(b));
}
template <class F>
inline typename F::Bits multiply_nearest(typename F::Bits a, typename F::Bits b) noexcept {
  return as_bits<F>(as_host<F>(a) * as_host<F>(b));
}
template <class F>
inline typename F::Bits divide_nearest(typename F::Bits a, typename F::Bits b) noexcept {
  return as_bits<F>(as_host<F>(a) / as_host<F>(b));
}
template <class F>
inline typename F::Bits fused_multiply_add_nearest(typename F::Bits a, typename F::Bits b,
                                                   typename F::Bits c) noexcept {
  return as_bits<F>(std::fma(as_host<F>(a), as_host<F>(b), as_host<F>(c)));
}
template <class F>
inline typename F::Bits square_root_nearest(typename F::Bits a) noexcept {
  return as_bits<F>(std::sqrt(as_host<F>(a)));
}

/// Whether the host computes to nearest in this format.
template <class F>
inline constexpr bool kHasHost = std::is_same_v<F, F32> || std::is_same_v<F, F64>;

}  // namespace ptxgen::inline v0::emulator::numerics
