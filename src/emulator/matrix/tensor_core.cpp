// src/emulator/matrix/tensor_core.cpp - sums of products as tensor cores compute them
#include "emulator/matrix/tensor_core.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "emulator/matrix/half.hpp"

namespace ptxgen::inline v0::emulator {

namespace {

using ptx::Type;

constexpr int kZeroExponent = -126;

// Of a type's significands after the point, and of its exponent.
struct Format {
  int fraction_bits;
  int bias;
  int special;  // the biased exponent of infinities and NaN
};

constexpr Format format_of(Type type) noexcept {
  switch (type) {
    case Type::f16:
    case Type::e4m3:  // widened, see TensorElement
    case Type::e5m2:
      return {10, 15, 31};
    case Type::bf16:
      return {7, 127, 255};
    case Type::tf32:
      return {10, 127, 255};
    default:  // f32
      return {23, 127, 255};
  }
}

double infinity_or_nan(bool negative, bool nan) noexcept {
  if (nan) return std::nan("");
  return negative ? -HUGE_VAL : HUGE_VAL;
}

// value * 2^shift, truncated toward zero.
std::int64_t shifted(std::int64_t value, int shift) noexcept {
  if (shift >= 0) return value << shift;
  if (shift < -62) return 0;
  return value < 0 ? -(-value >> -shift) : value >> -shift;
}

std::uint32_t float_toward_zero(double value) noexcept {
  if (std::isnan(value)) return 0x7fffffff;
  const auto nearest = static_cast<float>(value);
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (!std::isinf(nearest) && std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
  return bits;
}

constexpr int kFloatFraction = 23;

// `kept`: the fractional bits of an f32 result.
std::uint32_t rounded(Type d, double value, int kept) noexcept {
  if (d == Type::f16) return static_cast<std::uint32_t>(to_half(value));
  const std::uint32_t bits = float_toward_zero(value);
  return std::isfinite(value) ? bits & ~0u << (kFloatFraction - kept) : bits;
}

bool is_narrow(Type type) noexcept { return type == Type::e4m3 || type == Type::e5m2; }

// One sum. All significands fit: 22 bits of a product, 24 of c, at most 25 fractional bits, 33
// terms.
std::uint32_t one_sum(const TensorRule& rule, Type d, std::span<const TensorElement> a,
                      std::span<const TensorElement> b, std::uint32_t c_bits) noexcept {
  const TensorElement c = TensorElement::of(d, c_bits);
  double exact = c.value;
  int largest = c.exponent;
  for (std::size_t i = 0; i < a.size(); ++i) {
    exact += a[i].value * b[i].value;
    largest = std::max(largest, a[i].exponent + b[i].exponent);
  }
  if (!std::isfinite(exact)) return rounded(d, exact, rule.result_bits);
  std::int64_t sum = shifted(
      c.significand, rule.fraction_bits - format_of(d).fraction_bits + c.exponent - largest);
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum +=
        shifted(std::int64_t{a[i].significand} * b[i].significand,
                rule.fraction_bits - rule.product_bits + a[i].exponent + b[i].exponent - largest);
  }
  return rounded(d, std::ldexp(static_cast<double>(sum), largest - rule.fraction_bits),
                 rule.result_bits);
}

}  // namespace

TensorCore tensor_core(std::uint16_t sm) noexcept {
  constexpr unsigned kAll = 16;
  // Of 8-bit floats, sm_89 keeps 13 bits of terms and results; mma of sm_90 computes them as f16.
  if (sm >= 90) return {25, kAll, kAll, 2 * kAll, 25, kFloatFraction};
  return {24, 8, 4, kAll, 13, 13};
}

TensorCore warpgroup_core() noexcept {
  TensorCore core = tensor_core(90);
  core.fraction_bits_8 = core.result_bits_8 = 13;
  return core;
}

namespace {

// Four bits of exponent and three of fraction; no infinities, and one NaN of each sign.
TensorElement of_e4m3(std::uint32_t bits) noexcept {
  constexpr int kBias = 7;
  constexpr int kWiden = 10 - 3;
  TensorElement element;
  const bool negative = (bits & 0x80) != 0;
  if ((bits & 0x7f) == 0x7f) {
    element.value = infinity_or_nan(negative, true);
    return element;
  }
  const auto biased = static_cast<int>(bits >> 3 & 15);
  auto significand = static_cast<std::int32_t>(bits & 7);
  if (biased != 0) significand += 8;
  significand <<= kWiden;
  element.significand = negative ? -significand : significand;
  element.exponent = significand == 0 ? kZeroExponent : std::max(biased, 1) - kBias;
  element.value = std::ldexp(element.significand, element.exponent - 10);
  return element;
}

}  // namespace

TensorElement TensorElement::of(Type type, std::uint32_t bits) noexcept {
  if (type == Type::e4m3) return of_e4m3(bits);
  // The upper half of an f16.
  if (type == Type::e5m2) return of(Type::f16, bits << 8);
  const Format format = format_of(type);
  // In the place of an f32, or of an f16.
  const int width = type == Type::f16 ? 16 : 32;
  if (type == Type::bf16) bits <<= 16;
  const int stored = width == 16 ? 10 : 23;
  const int dropped = stored - format.fraction_bits;
  const bool negative = (bits >> (width - 1) & 1) != 0;
  const auto biased = static_cast<int>(bits >> stored & static_cast<std::uint32_t>(format.special));
  const std::uint32_t fraction = (bits & ((1u << stored) - 1)) >> dropped;
  TensorElement element;
  if (biased == format.special) {
    element.value = infinity_or_nan(negative, fraction != 0);
    return element;
  }
  auto significand = static_cast<std::int32_t>(fraction);
  if (biased != 0) significand += 1 << format.fraction_bits;
  element.significand = negative ? -significand : significand;
  element.exponent = significand == 0 ? kZeroExponent : std::max(biased, 1) - format.bias;
  element.value = std::ldexp(element.significand, element.exponent - format.fraction_bits);
  return element;
}

TensorRule tensor_rule(const TensorCore& core, Type element) noexcept {
  const int product_bits = 2 * format_of(element).fraction_bits;
  if (is_narrow(element)) {
    return {core.fraction_bits_8, product_bits, core.result_bits_8, core.products_8};
  }
  return {core.fraction_bits, product_bits, kFloatFraction,
          element == Type::tf32 ? core.products_32 : core.products_16};
}

std::uint32_t tensor_sum(const TensorCore& core, Type element, Type d,
                         std::span<const TensorElement> a, std::span<const TensorElement> b,
                         std::uint32_t c) noexcept {
  const TensorRule rule = tensor_rule(core, element);
  for (std::size_t first = 0; first < a.size(); first += rule.products) {
    const std::size_t count = std::min<std::size_t>(rule.products, a.size() - first);
    c = one_sum(rule, d, a.subspan(first, count), b.subspan(first, count), c);
  }
  return c;
}

}  // namespace ptxgen::inline v0::emulator
