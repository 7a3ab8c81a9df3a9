// src/cli/commands/gemv_numbers.cpp - the error of a result of ptxgen gemv
#include "cli/commands/gemv_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/half.hpp"
#include "support/random_values.hpp"

namespace ptxgen::cli {

namespace {

/// The error of rounding an f32 to a type: half a unit in the last place, of normal numbers and of
/// subnormal ones. Zero for f32.
struct Rounding {
  double relative = 0;
  double absolute = 0;
};

Rounding rounding_of(ElementType type) noexcept {
  if (type == ElementType::f16) return {0x1p-11, 0x1p-25};
  if (type == ElementType::bf16) return {0x1p-8, 0x1p-134};
  return {};
}

}  // namespace

std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  std::string digits(16, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    digits[15 - i] = "0123456789abcdef"[hash >> (4 * i) & 15];
  }
  return "fnv1a64:" + digits;
}

std::vector<std::byte> random_elements(std::uint64_t count, ElementType type, std::uint64_t seed) {
  const std::vector<float> values = random_values(static_cast<std::size_t>(count), seed);
  std::vector<std::byte> elements(values.size() * bytes(type));
  if (type == ElementType::f32) {
    if (!values.empty()) std::memcpy(elements.data(), values.data(), elements.size());
    return elements;
  }
  const auto rounded = type == ElementType::f16 ? float_to_f16 : float_to_bf16;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits = rounded(values[i]);
    std::memcpy(elements.data() + 2 * i, &bits, 2);
  }
  return elements;
}

std::vector<float> values_of(std::span<const std::byte> elements, ElementType type) {
  std::vector<float> values(elements.size() / bytes(type));
  if (type == ElementType::f32) {
    if (!values.empty()) std::memcpy(values.data(), elements.data(), 4 * values.size());
    return values;
  }
  const auto value = type == ElementType::f16 ? f16_to_float : bf16_to_float;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, elements.data() + 2 * i, 2);
    values[i] = value(bits);
  }
  return values;
}

Comparison compare(std::span<const float> y, ElementType type, const GemvReference& reference,
                   std::uint64_t roundings) {
  const Rounding last = rounding_of(type);
  Comparison result;
  double errors = 0;
  double squares = 0;
  for (std::size_t j = 0; j < y.size(); ++j) {
    const double error = std::abs(double{y[j]} - reference.y[j]);
    const double sums = gemv_error_bound(reference.magnitude[j], roundings);
    const double bound = sums + last.relative * (std::abs(reference.y[j]) + sums) + last.absolute;
    errors += error * error;
    squares += reference.y[j] * reference.y[j];
    // False for a NaN, which is outside.
    const bool inside = error <= bound;
    if (!inside) ++result.outside;
    double share = bound > 0 ? error / bound : (inside ? 0 : std::numeric_limits<double>::max());
    if (!std::isfinite(share)) share = std::numeric_limits<double>::max();
    if (j == 0 || share > result.worst) {
      result.worst = share;
      result.bound = bound;
    }
    result.max_error = std::isnan(error) ? error : std::max(result.max_error, error);
  }
  result.nmse = squares > 0 ? errors / squares : errors;
  return result;
}

}  // namespace ptxgen::cli
