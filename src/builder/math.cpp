// src/builder/math.cpp - elementary functions of f32
#include "ptxgen/builder/math.hpp"

#include <array>
#include <limits>

#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

using Float32 = Value<f32>;
using Bits = Value<s32>;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLog2E = 0x1.715476p+0f;
constexpr float kLog2ERest = 0x1.4ae0cp-26f;  // log2(e) - kLog2E
constexpr float kLn2 = 0x1.62e43p-1f;
constexpr float kLn2Rest = -0x1.05c61p-29f;  // ln(2) - kLn2

/// Emits arithmetic of f32 with the C++ line of the function's caller.
struct Emitter {
  KernelBuilder& k;
  SourceLocation at;

  Emitter(const Float32& x, SourceLocation site)
      : k(*static_cast<KernelBuilder*>(x.core())), at(site) {}

  template <class A, class B>
  [[nodiscard]] Float32 add(const A& a, const B& b) const {
    return k.add(a, b, {}, at);
  }
  template <class A, class B>
  [[nodiscard]] Float32 sub(const A& a, const B& b) const {
    return k.sub(a, b, {}, at);
  }
  template <class A, class B>
  [[nodiscard]] Float32 mul(const A& a, const B& b) const {
    return k.mul(a, b, {}, at);
  }
  template <class A, class B, class C>
  [[nodiscard]] Float32 fma(const A& a, const B& b, const C& c) const {
    return k.fma(a, b, c, {}, at);
  }
  template <class A, class B>
  [[nodiscard]] Float32 select(const Pred& p, const A& a, const B& b) const {
    return k.selp(a, b, p, at);
  }
  [[nodiscard]] Pred less(const Float32& a, float b) const {
    return k.setp(Comparison::lt, a, b, false, at);
  }
  /// Horner's scheme; the coefficient of the highest power first.
  template <std::size_t kCount>
  [[nodiscard]] Float32 polynomial(const Float32& x,
                                   const std::array<float, kCount>& coefficients) const {
    Float32 sum = fma(x, coefficients[0], coefficients[1]);
    for (std::size_t i = 2; i < kCount; ++i) sum.rebind(fma(sum, x, coefficients[i]));
    return sum;
  }
  /// x where it is a NaN, else y.
  [[nodiscard]] Float32 keep_nan(const Float32& x, const Float32& y) const {
    return select(k.setp(Comparison::num, x, x, false, at), y, x);
  }
  /// The sign of `sign`, the rest of `magnitude`.
  [[nodiscard]] Float32 copysign(const Float32& sign, const Float32& magnitude) const {
    return k.copysign(sign, magnitude, at);
  }
};

/// x = `integer` + a rest of at most a half, for |x| < 2^22. `number` is the integer as f32.
struct Rounded {
  Float32 number;
  Bits integer;
};
// `a * b` rounded: adding 1.5 * 2^23 leaves the integer in the lowest bits.
Rounded round_product(const Emitter& e, const Float32& a, float b) {
  constexpr float kShift = 12582912.0f;
  const Float32 shifted = e.fma(a, b, kShift);
  return {e.sub(shifted, kShift), e.k.sub(e.k.bitcast<s32>(shifted, e.at), 0x4b400000, {}, e.at)};
}

// 2^n for -126 <= n <= 127.
Float32 power_of_two(const Emitter& e, const Bits& n) {
  const Bits biased = e.k.add(n, 127, {}, e.at);
  return e.k.bitcast<f32>(e.k.shl(biased, 23u, e.at), e.at);
}

// x * 2^n in two products, so that results below the smallest normal number are right too.
Float32 scaled(const Emitter& e, const Float32& x, const Bits& n) {
  const Bits first = e.k.shr(n, 1u, e.at);
  const Float32 first_factor = power_of_two(e, first);
  const Float32 second_factor = power_of_two(e, e.k.sub(n, first, {}, e.at));
  return e.mul(e.mul(x, first_factor), second_factor);
}

// x within [low, high]; a NaN becomes a number.
Float32 clamp(const Emitter& e, const Float32& x, float low, float high) {
  return e.k.max(e.k.min(x, high, {}, e.at), low, {}, e.at);
}

Float32 precise_exp(const Emitter& e, const Float32& x) {
  // Beyond these the result is 0 or inf, and n stays where its two halves are exponents.
  const Float32 clamped = clamp(e, x, -104.0f, 89.0f);
  const Rounded n = round_product(e, clamped, kLog2E);
  // ln 2 as 0x1.62e4p-1, whose products with n are exact, and the rest.
  const Float32 near = e.fma(n.number, -0x1.62e4p-1f, clamped);
  const Float32 r = e.fma(n.number, -0x1.7f7d1cp-20f, near);
  constexpr std::array kTaylor = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24,
                                  1.0f / 6,    0.5f,       1.0f,       1.0f};
  return e.keep_nan(x, scaled(e, e.polynomial(r, kTaylor), n.integer));
}

Float32 precise_exp2(const Emitter& e, const Float32& x) {
  const Float32 clamped = clamp(e, x, -151.0f, 129.0f);
  const Rounded n = round_product(e, clamped, 1.0f);
  const Float32 r = e.sub(clamped, n.number);
  // ln(2)^i / i!
  constexpr std::array kTaylor = {0x1.ffcbfcp-17f, 0x1.430912p-13f, 0x1.5d87fep-10f, 0x1.3b2ab6p-7f,
                                  0x1.c6b08ep-5f,  0x1.ebfbep-3f,   0x1.62e43p-1f,   1.0f};
  return e.keep_nan(x, scaled(e, e.polynomial(r, kTaylor), n.integer));
}

/// ln(x) = `exponent` * ln 2 + `rest`, |rest| <= ln(4/3) + .., for positive finite x.
struct Logarithm {
  Float32 exponent;
  Float32 rest;
};
Logarithm split_logarithm(const Emitter& e, const Float32& x) {
  const Pred subnormal = e.less(x, 0x1p-126f);
  const Float32 normal = e.select(subnormal, e.mul(x, 0x1p23f), x);
  const Bits bits = e.k.bitcast<s32>(normal, e.at);
  // The mantissa in [2/3, 4/3), so that numbers near 1 have exponent 0.
  const Bits from_two_thirds = e.k.sub(bits, 0x3f2aaaab, {}, e.at);
  const Bits exponent_bits = e.k.and_(from_two_thirds, -0x800000, e.at);
  const Float32 mantissa = e.k.bitcast<f32>(e.k.sub(bits, exponent_bits, {}, e.at), e.at);
  const Float32 shifted_exponent = e.k.cvt<f32>(exponent_bits, Rounding::rn, e.at);
  const Float32 unscaled = e.select(subnormal, -23.0f, e.k.constant<f32>(0.0f, e.at));
  const Float32 exponent = e.fma(shifted_exponent, 0x1p-23f, unscaled);
  // ln(1 + f) = f - f^2 / 2 + f^3 * p(f)
  const Float32 f = e.sub(mantissa, 1.0f);
  constexpr std::array kMinimax = {0x1.d01a22p-4f,  -0x1.fcd036p-4f, 0x1.bf1afp-4f,
                                   -0x1.f75896p-4f, 0x1.24b28cp-3f,  -0x1.557832p-3f,
                                   0x1.999954p-3f,  -0x1.ffffb6p-3f, 0x1.555556p-2f};
  const Float32 higher = e.fma(f, e.polynomial(f, kMinimax), -0.5f);
  return {exponent, e.fma(e.mul(f, f), higher, f)};
}

// `ordinary` for positive finite x; what `lg2.approx` gives, exactly, for the others.
Float32 with_special_logarithms(const Emitter& e, const Float32& x, const Float32& ordinary) {
  const Pred positive = e.k.setp(Comparison::gt, x, 0.0f, false, e.at);
  const Pred both = e.k.setp(Comparison::lt, ptx::Modifier::and_, x, kInf, positive, e.at);
  return e.select(both, ordinary, e.k.lg2(x, false, e.at));
}

Float32 precise_log(const Emitter& e, const Float32& x) {
  const Logarithm l = split_logarithm(e, x);
  const Float32 low = e.fma(l.exponent, kLn2Rest, l.rest);
  return with_special_logarithms(e, x, e.fma(l.exponent, kLn2, low));
}

Float32 precise_log2(const Emitter& e, const Float32& x) {
  const Logarithm l = split_logarithm(e, x);
  const Float32 low = e.fma(l.rest, kLog2ERest, l.exponent);
  return with_special_logarithms(e, x, e.fma(l.rest, kLog2E, low));
}

Float32 precise_tanh(const Emitter& e, const Float32& x) {
  const Float32 magnitude = e.k.abs(x, false, e.at);
  // tanh(x) = x + x^3 * p(x^2)
  const Float32 square = e.mul(x, x);
  constexpr std::array kMinimax = {-0x1.9ada6p-8f, 0x1.59e1c8p-6f, -0x1.b955dcp-5f, 0x1.110eep-3f,
                                   -0x1.555554p-2f};
  const Float32 cube = e.mul(x, square);
  const Float32 near = e.fma(cube, e.polynomial(square, kMinimax), x);
  // 1 - 2 / (exp(2 |x|) + 1)
  const Float32 power = precise_exp(e, e.add(magnitude, magnitude));
  const Float32 quotient = e.k.div(2.0f, e.add(power, 1.0f), {}, e.at);
  const Float32 far = e.sub(1.0f, quotient);
  const Float32 value = e.select(e.less(magnitude, 0.6f), near, far);
  return e.keep_nan(x, e.copysign(x, value));
}

Float32 erf_of(const Emitter& e, const Float32& x, Accuracy accuracy) {
  // |x| < 1: x + x * p(x^2)
  const Float32 square = e.mul(x, x);
  constexpr std::array kNear = {0x1.4a569p-14f, -0x1.a45088p-11f, 0x1.54127p-8f, -0x1.b7fabap-6f,
                                0x1.ce2d1p-4f,  -0x1.81273ep-2f,  0x1.06eba8p-3f};
  const Float32 near = e.fma(x, e.polynomial(square, kNear), x);
  // 1 - exp(p(|x|)), p the logarithm of 1 - erf; from 4 on that is 1.
  const Float32 magnitude = e.k.abs(x, false, e.at);
  constexpr std::array kFar = {0x1.b7783p-20f,  -0x1.825ce4p-15f, 0x1.38e5e6p-11f,
                               -0x1.37ecc6p-8f, 0x1.b0e246p-6f,   -0x1.c2e356p-4f,
                               -0x1.437eb4p-1f, -0x1.2156fap+0f,  0x1.4fb068p-12f};
  const Float32 logarithm = e.polynomial(e.k.min(magnitude, 4.0f, {}, e.at), kFar);
  const Float32 far = e.copysign(x, e.sub(1.0f, exp(logarithm, accuracy, e.at)));
  return e.keep_nan(x, e.select(e.less(magnitude, 1.0f), near, far));
}

// pi / 2 = kHalfPi[0] + kHalfPi[1] + kHalfPi[2], each rounded towards zero. All are positive, so
// that the reduction keeps the sign of a zero.
constexpr std::array kHalfPi = {0x1.921fb4p+0f, 0x1.4442dp-24f, 0x1.846988p-48f};

/// x = quadrant * pi / 2 + rest, |rest| <= pi / 4.
struct Reduced {
  Var<f32> rest;
  Var<s32> quadrant;  ///< modulo 4
};

// 2 / pi in binary, after 32 zero bits.
constexpr std::array<unsigned, 7> kTwoOverPi = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                                0xf534ddc0, 0xdb629599, 0x3c439041};

// Payne and Hanek: of the product of x and 2 / pi only the bits from 4 downwards matter. 96 bits
// of 2 / pi, chosen by the exponent, times the mantissa as an integer.
void reduce_large(const Emitter& e, const Float32& x, Reduced& to) {
  KernelBuilder& k = e.k;
  const SourceLocation at = e.at;
  const Value<u32> bits = k.bitcast<u32>(x, at);
  const Value<u32> shifted_mantissa = k.shl(bits, 8u, at);
  const Value<u32> mantissa = k.or_(shifted_mantissa, 0x80000000u, at);
  const Value<u32> biased = k.bfe(bits, 23u, 8u, at);
  const Value<u32> position = k.sub(biased, 128u, {}, at);  // 16 to 127, of the first bit
  const Value<u32> first = k.shr(position, 5u, at);
  const Value<u32> shift = k.and_(position, 31u, at);
  const auto word = [&](std::size_t i) {
    Value<u32> chosen = k.constant<u32>(kTwoOverPi[i], at);
    for (std::size_t skip = 1; skip < 4; ++skip) {
      const Pred further = k.setp(Comparison::ge, first, static_cast<unsigned>(skip), false, at);
      chosen.rebind(k.selp(kTwoOverPi[i + skip], chosen, further, at));
    }
    return chosen;
  };
  const std::array words = {word(0), word(1), word(2), word(3)};
  const Value<u32> high = k.shf_l(words[1], words[0], shift, at);
  const Value<u32> middle = k.shf_l(words[2], words[1], shift, at);
  const Value<u32> low = k.shf_l(words[3], words[2], shift, at);
  const Value<u64> low_product = k.mul_wide(mantissa, low, at);
  const Value<u64> carry = k.shr(low_product, 32u, at);
  const Value<u64> middle_product = k.mad_wide(mantissa, middle, carry, at);
  const auto middle_words = k.unpack<u32>(middle_product, at);
  const Value<u32> top = k.mad_lo(mantissa, high, middle_words[1], at);
  // The two highest bits are the quadrant, what follows is its fraction; from a half on, the next
  // quadrant is nearer, and the fraction negative.
  const Value<s64> product = k.pack<s64>(middle_words[0], top, at);
  const Value<s64> fraction = k.shl(product, 2u, at);
  const Pred half = k.setp(Comparison::lt, fraction, 0, false, at);
  const Value<u32> below = k.shr(top, 30u, at);
  const Value<u32> above = k.add(below, 1u, {}, at);
  const Value<u32> quadrant = k.selp(above, below, half, at);
  const Float32 rest = e.mul(k.cvt<f32>(fraction, Rounding::rn, at), 0x1.921fb6p-64f);
  const Pred negative = e.less(x, 0.0f);
  const Bits forward = k.bitcast<s32>(quadrant, at);
  to.quadrant.set({k.selp(k.neg(forward, false, at), forward, negative, at), at});
  to.rest.set({e.select(negative, k.neg(rest, false, at), rest), at});
}

Reduced reduce(const Emitter& e, const Float32& x) {
  const Rounded n = round_product(e, x, 0x1.45f306p-1f);
  // The first sum is exact for |n| < 2^17.
  Float32 rest = x;
  for (const float part : kHalfPi) rest.rebind(e.fma(n.number, -part, rest));
  Reduced reduced{e.k.var(rest, e.at), e.k.var(n.integer, e.at)};
  const Pred large = e.k.setp(Comparison::ge, e.k.abs(x, false, e.at), 0x1p17f, false, e.at);
  e.k.if_({large, e.at}, [&] { reduce_large(e, x, reduced); });
  return reduced;
}

// The sine or cosine of the rest by the quadrant's lowest bit, negated by its second one.
Float32 in_quadrant(const Emitter& e, const Float32& even, const Float32& odd,
                    const Bits& quadrant) {
  const Bits parity = e.k.and_(quadrant, 1, e.at);
  const Pred is_even = e.k.setp(Comparison::eq, parity, 0, false, e.at);
  const Float32 value = e.select(is_even, even, odd);
  const Bits sign = e.k.and_(e.k.shl(quadrant, 30u, e.at), std::numeric_limits<int>::min(), e.at);
  return e.k.bitcast<f32>(e.k.xor_(e.k.bitcast<s32>(value, e.at), sign, e.at), e.at);
}

SinCos precise_sincos(const Emitter& e, const Float32& x) {
  const Reduced reduced = reduce(e, x);
  const Float32 r = reduced.rest.read(e.at);
  const Bits quadrant = reduced.quadrant.read(e.at);
  const Float32 square = e.mul(r, r);
  constexpr std::array kSine = {-0x1.9ac98ep-13f, 0x1.110c28p-7f, -0x1.555552p-3f};
  constexpr std::array kCosine = {0x1.9bd88p-16f, -0x1.6c12d2p-10f, 0x1.555554p-5f, -0.5f, 1.0f};
  const Float32 cube = e.mul(r, square);
  const Float32 sine = e.copysign(r, e.fma(cube, e.polynomial(square, kSine), r));  // for -0
  const Float32 cosine = e.polynomial(square, kCosine);
  const Pred finite = e.less(e.k.abs(x, false, e.at), kInf);
  const Bits next = e.k.add(quadrant, 1, {}, e.at);
  return {e.select(finite, in_quadrant(e, sine, cosine, quadrant), kNan),
          e.select(finite, in_quadrant(e, sine, cosine, next), kNan)};
}

// x without its full periods, by two sums; the first one is exact for |x| < 2^17.
Float32 within_a_period(const Emitter& e, const Float32& x) {
  const Rounded periods = round_product(e, x, 0x1.45f306p-3f);
  const Float32 near = e.fma(periods.number, -4 * kHalfPi[0], x);
  return e.fma(periods.number, -4 * kHalfPi[1], near);
}

}  // namespace

const MathBound& math_bound(std::string_view function, Accuracy accuracy) {
  for (const MathBound& row : kMathBounds) {
    if (row.function == function && row.accuracy == accuracy) return row;
  }
  throw Error(Stage::Build, "no-function",
              format_text("there is no bound of '{}' in that form; see kMathBounds", function));
}

Float32 exp(const Float32& x, Accuracy accuracy, SourceLocation at) {
  const Emitter e(x, at);
  if (accuracy == Accuracy::Precise) return precise_exp(e, x);
  return e.k.ex2(e.mul(x, kLog2E), false, at);
}

Float32 exp2(const Float32& x, Accuracy accuracy, SourceLocation at) {
  const Emitter e(x, at);
  return accuracy == Accuracy::Precise ? precise_exp2(e, x) : e.k.ex2(x, false, at);
}

Float32 log(const Float32& x, Accuracy accuracy, SourceLocation at) {
  const Emitter e(x, at);
  return accuracy == Accuracy::Precise ? precise_log(e, x) : e.mul(e.k.lg2(x, false, at), kLn2);
}

Float32 log2(const Float32& x, Accuracy accuracy, SourceLocation at) {
  const Emitter e(x, at);
  return accuracy == Accuracy::Precise ? precise_log2(e, x) : e.k.lg2(x, false, at);
}

Float32 sigmoid(const Float32& x, Accuracy accuracy, SourceLocation at) {
  const Emitter e(x, at);
  const Float32 power = exp(e.k.neg(x, false, at), accuracy, at);
  const Float32 denominator = e.add(power, 1.0f);
  if (accuracy == Accuracy::Approximate) return e.k.rcp(denominator, {.approx = true}, at);
  return e.k.div(1.0f, denominator, {}, at);
}

Float32 tanh(const Float32& x, Accuracy accuracy, SourceLocation at) {
  const Emitter e(x, at);
  return accuracy == Accuracy::Precise ? precise_tanh(e, x) : e.k.tanh(x, at);
}

Float32 erf(const Float32& x, Accuracy accuracy, SourceLocation at) {
  return erf_of(Emitter(x, at), x, accuracy);
}

SinCos sincos(const Float32& x, Accuracy accuracy, SourceLocation at) {
  const Emitter e(x, at);
  if (accuracy == Accuracy::Precise) return precise_sincos(e, x);
  const Float32 rest = within_a_period(e, x);
  return {e.k.sin(rest, false, at), e.k.cos(rest, false, at)};
}

Float32 sin(const Float32& x, Accuracy accuracy, SourceLocation at) {
  if (accuracy == Accuracy::Precise) return sincos(x, accuracy, at).sin;
  const Emitter e(x, at);
  return e.k.sin(within_a_period(e, x), false, at);
}

Float32 cos(const Float32& x, Accuracy accuracy, SourceLocation at) {
  if (accuracy == Accuracy::Precise) return sincos(x, accuracy, at).cos;
  const Emitter e(x, at);
  return e.k.cos(within_a_period(e, x), false, at);
}

}  // namespace ptxgen::inline v0
