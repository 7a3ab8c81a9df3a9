// src/builder/math.cpp - elementary functions of f32
#include "ptxgen/builder/math.hpp"

#include <array>

#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

KernelBuilder& builder_of(const Value<f32>& x) { return *static_cast<KernelBuilder*>(x.core()); }

// 2^n for -126 <= n <= 127.
Value<f32> power_of_two(KernelBuilder& k, const Value<s32>& n, SourceLocation at) {
  const Value<s32> biased = k.add(n, 127, {}, at);
  const Value<s32> bits = k.shl(biased, 23u, at);
  return k.bitcast<f32>(bits, at);
}

// x where it is a NaN, else y.
Value<f32> keep_nan(KernelBuilder& k, const Value<f32>& x, const Value<f32>& y, SourceLocation at) {
  const Pred number = k.setp(Comparison::num, x, x, false, at);
  return k.selp(y, x, number, at);
}

Value<f32> precise_exp(KernelBuilder& k, const Value<f32>& x, SourceLocation at) {
  // Beyond these the result is 0 or inf, and n stays where its two halves are exponents.
  const Value<f32> high = k.min(x, 89.0f, {}, at);
  const Value<f32> clamped = k.max(high, -104.0f, {}, at);
  // Adding 1.5 * 2^23 rounds to an integer, which is then in the lowest bits.
  constexpr float kRound = 12582912.0f;
  const Value<f32> shifted = k.fma(clamped, 1.44269504f, kRound, {}, at);
  const Value<f32> rounded = k.sub(shifted, kRound, {}, at);
  const Value<s32> shifted_bits = k.bitcast<s32>(shifted, at);
  const Value<s32> n = k.sub(shifted_bits, 0x4b400000, {}, at);
  // ln 2 as 0x1.62e4p-1, whose products with n are exact, and the rest.
  const Value<f32> near = k.fma(rounded, -0x1.62e4p-1f, clamped, {}, at);
  const Value<f32> r = k.fma(rounded, -0x1.7f7d1cp-20f, near, {}, at);
  constexpr std::array kTaylor = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24,
                                  1.0f / 6,    0.5f,       1.0f,       1.0f};
  Value<f32> sum = k.fma(r, kTaylor[0], kTaylor[1], {}, at);
  for (std::size_t i = 2; i < kTaylor.size(); ++i) sum.rebind(k.fma(sum, r, kTaylor[i], {}, at));
  const Value<s32> first = k.shr(n, 1u, at);
  const Value<s32> second = k.sub(n, first, {}, at);
  const Value<f32> first_factor = power_of_two(k, first, at);
  const Value<f32> second_factor = power_of_two(k, second, at);
  const Value<f32> half_scaled = k.mul(sum, first_factor, {}, at);
  return keep_nan(k, x, k.mul(half_scaled, second_factor, {}, at), at);
}

}  // namespace

const MathBound& math_bound(std::string_view function, Accuracy accuracy) {
  for (const MathBound& row : kMathBounds) {
    if (row.function == function && row.accuracy == accuracy) return row;
  }
  throw Error(Stage::Build, "no-function",
              format_text("there is no bound of '{}' in that form; see kMathBounds", function));
}

Value<f32> exp(const Value<f32>& x, Accuracy accuracy, SourceLocation at) {
  KernelBuilder& k = builder_of(x);
  if (accuracy == Accuracy::Precise) return precise_exp(k, x, at);
  return k.ex2(k.mul(x, 1.44269504f, {}, at), false, at);
}

Value<f32> sigmoid(const Value<f32>& x, Accuracy accuracy, SourceLocation at) {
  KernelBuilder& k = builder_of(x);
  const Value<f32> minus = k.neg(x, false, at);
  const Value<f32> power = exp(minus, accuracy, at);
  const Value<f32> denominator = k.add(power, 1.0f, {}, at);
  if (accuracy == Accuracy::Approximate) return k.rcp(denominator, {.approx = true}, at);
  return k.div(1.0f, denominator, {}, at);
}

}  // namespace ptxgen::inline v0
