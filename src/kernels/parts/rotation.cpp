// src/kernels/parts/rotation.cpp - rotary position embedding of pairs of elements
#include "kernels/parts/rotation.hpp"

#include <array>
#include <cmath>

namespace ptxgen::inline v0 {

namespace {

// Precise angles, in f64: at position 131071 an angle's relative error of 2^-24 is 0.01 radians.

Value<f64> polynomial(KernelBuilder& k, const Value<f64>& x, std::span<const double> coefficients) {
  Value<f64> sum = k.constant<f64>(coefficients[0]);
  for (const double next : coefficients.subspan(1)) sum.rebind(k.fma(sum, x, next));
  return sum;
}

// log2 of a positive normal number: 2^n * m with m in [2/3, 4/3), and ln(m) = 2 artanh(s) with
// s = (m - 1) / (m + 1), |s| <= 1/5; the series' next term is below 2^-50.
Value<f64> log2_of(KernelBuilder& k, const Value<f32>& x) {
  const Value<s32> bits = k.bitcast<s32>(x);
  const Value<s32> exponent_bits = (bits - 0x3f2aaaab) & -0x800000;
  const Value<f64> m = k.convert<f64>(k.bitcast<f32>(bits - exponent_bits));
  const Value<f64> numerator = m - 1.0;
  const Value<f64> s = numerator / (m + 1.0);
  constexpr std::array kSeries = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                                  1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
  const Value<f64> half = s * polynomial(k, s * s, kSeries);
  constexpr double kTwoLog2E = 2 * 1.44269504088896340736;
  return k.fma(half, kTwoLog2E, k.convert<f64>(exponent_bits >> 23u));
}

// 2^x for |x| < 1000: the Taylor polynomial of degree 12 for the fraction.
Value<f64> exp2_of(KernelBuilder& k, const Value<f64>& x) {
  const Value<f64> integer = k.cvt<f64>(x, Rounding::rni);
  const Value<f64> fraction = x - integer;
  std::array<double, 13> taylor{};
  double coefficient = 1;
  for (std::size_t i = 0; i < taylor.size(); ++i) {
    taylor[taylor.size() - 1 - i] = coefficient;
    coefficient *= 0.693147180559945309417 / static_cast<double>(i + 1);
  }
  const Value<f64> mantissa = polynomial(k, fraction, taylor);
  const Value<s64> biased = k.cvt<s64>(integer, Rounding::rni) + 1023;
  return mantissa * k.bitcast<f64>(biased << 52u);
}

Value<f64> exact_frequency(KernelBuilder& k, const Value<u32>& pair, const Value<f32>& theta,
                           std::uint32_t head_size) {
  const Value<f64> power = k.convert<f64>(pair) * (-2.0 / head_size);
  return exp2_of(k, power * log2_of(k, theta));
}

Value<f32> approximate_frequency(KernelBuilder& k, const Value<u32>& pair, const Value<f32>& theta,
                                 std::uint32_t head_size) {
  const Value<f32> power = k.convert<f32>(pair) * (-2.0f / static_cast<float>(head_size));
  return exp2(power * log2(theta, Accuracy::Approximate), Accuracy::Approximate);
}

// The angle less its full periods, 2 pi in two parts.
Value<f32> reduced_angle(KernelBuilder& k, const Value<f64>& angle) {
  const Value<f64> periods = k.cvt<f64>(angle * 0.15915494309189533577, Rounding::rni);
  const Value<f64> near = k.fma(periods, -0x1.921fb54442d18p+2, angle);
  return k.convert<f32>(k.fma(periods, -0x1.1a62633145c07p-52, near));
}

}  // namespace

Rotation rotation_of(KernelBuilder& k, bool precise, const Value<u32>& pair,
                     const Value<f32>& theta, std::uint32_t head_size,
                     const std::optional<Value<f32>>& factor) {
  if (precise) {
    Value<f64> frequency = exact_frequency(k, pair, theta, head_size);
    if (factor) frequency.rebind(frequency / k.convert<f64>(*factor));
    return [&k, frequency](const Value<u32>& position) {
      const Value<f64> angle = k.convert<f64>(position) * frequency;
      return sincos(reduced_angle(k, angle), Accuracy::Precise);
    };
  }
  Value<f32> frequency = approximate_frequency(k, pair, theta, head_size);
  if (factor) frequency.rebind(frequency / *factor);
  return [&k, frequency](const Value<u32>& position) {
    return sincos(k.convert<f32>(position) * frequency, Accuracy::Approximate);
  };
}

std::pair<Value<f32>, Value<f32>> rotated(KernelBuilder& k, const Value<f32>& x0,
                                          const Value<f32>& x1, const SinCos& by) {
  const Value<f32> product0 = x1 * by.sin;
  const Value<f32> product1 = x1 * by.cos;
  const Value<f32> y0 = k.fma(x0, by.cos, -product0);
  const Value<f32> y1 = k.fma(x0, by.sin, product1);
  return {y0, y1};
}

void rotation_reference(const RotationSpec& spec, double position, double direction,
                        std::span<const double> x, std::span<double> y,
                        std::span<double> magnitude) {
  const std::size_t half = x.size() / 2;
  const std::size_t distance = spec.interleaved ? 1 : half;
  for (std::size_t i = 0; i < half; ++i) {
    const double power = -2.0 * static_cast<double>(i) / static_cast<double>(x.size());
    const double factor = spec.factors.empty() ? 1 : spec.factors[i];
    const double angle = position * std::pow(spec.theta, power) / factor;
    const double sine = direction * std::sin(angle);
    const double cosine = std::cos(angle);
    const std::size_t at = spec.interleaved ? 2 * i : i;
    const double x0 = x[at];
    const double x1 = x[at + distance];
    y[at] = x0 * cosine - x1 * sine;
    y[at + distance] = x0 * sine + x1 * cosine;
    magnitude[at] = (std::abs(x0) + std::abs(x1)) * (spec.precise ? 1 : 1 + angle);
    magnitude[at + distance] = magnitude[at];
  }
}

// Precise: the angle within a period is rounded once to f32, at up to pi; sine and cosine have 3
// units in the last place, product and sum one each. Approximate: the exponent of the frequency is
// up to 20, log2 has 2^-22 of it, which exp2 turns into a relative error of the angle; sin.approx
// and cos.approx are within 2^-20. A factor adds the rounding of its division.
double rotation_error(bool precise, bool factors) {
  return (precise ? 10 : factors ? 129 : 128) * 0x1p-24;
}

}  // namespace ptxgen::inline v0
