// src/kernels/host_values.cpp - elements on the host as fp64, and back
#include "ptxgen/kernels/host_values.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ptxgen/kernels/quantization/blocks.hpp"
#include "support/fp8.hpp"
#include "support/half.hpp"

namespace ptxgen::inline v0 {

namespace {

// Rounded to odd, so that a second rounding to fewer than 23 digits gives what one would have
// (Boldo and Melquiond, Emulation of a FMA and correctly rounded sums, 2008).
float rounded_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (std::isnan(value) || std::isinf(nearest) || double{nearest} == value) return nearest;
  const bool away = std::abs(double{nearest}) > std::abs(value);
  const float towards_zero = away ? std::nextafterf(nearest, 0.0f) : nearest;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(towards_zero) | 1u);
}

template <class T>
T bits_at(const std::byte* at) {
  T bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

double value_at(ElementType type, const std::byte* at) {
  switch (type) {
    case ElementType::f32:
      return double{bits_at<float>(at)};
    case ElementType::f16:
      return double{f16_to_float(bits_at<std::uint16_t>(at))};
    case ElementType::bf16:
      return double{bf16_to_float(bits_at<std::uint16_t>(at))};
    case ElementType::s32:
      return static_cast<double>(bits_at<std::int32_t>(at));
    case ElementType::u64:
      return static_cast<double>(bits_at<std::uint64_t>(at));
    case ElementType::b8:
      return static_cast<double>(bits_at<std::uint8_t>(at));
    case ElementType::e4m3:
      return double{e4m3_to_float(bits_at<std::uint8_t>(at))};
    default:
      return static_cast<double>(bits_at<std::uint32_t>(at));
  }
}

template <class T>
void put(std::byte* at, T bits) {
  std::memcpy(at, &bits, sizeof bits);
}

void put_value(ElementType type, double value, std::byte* at) {
  switch (type) {
    case ElementType::f32:
      return put(at,
                 std::isnan(value) ? std::bit_cast<float>(0x7fffffffu) : static_cast<float>(value));
    case ElementType::f16:
      return put(at, float_to_f16(rounded_to_odd(value)));
    case ElementType::bf16:
      return put(at, float_to_bf16(rounded_to_odd(value)));
    case ElementType::s32:
      return put(at, static_cast<std::int32_t>(value));
    case ElementType::u64:
      return put(at, static_cast<std::uint64_t>(value));
    case ElementType::b8:
      return put(at, static_cast<std::uint8_t>(value));
    case ElementType::e4m3:
      return put(at, float_to_e4m3(rounded_to_odd(value)));
    default:
      return put(at, static_cast<std::uint32_t>(value));
  }
}

std::vector<double> block_values(ElementType type, std::span<const std::byte> blocks) {
  std::vector<float> values(blocks.size() / bytes(type) * info(type).block_values);
  dequantize(type, blocks, values);
  return {values.begin(), values.end()};
}

// The last block is filled with zeros.
std::vector<std::byte> to_blocks(ElementType type, std::span<const double> values) {
  std::vector<std::byte> blocks(static_cast<std::size_t>(bytes(type, values.size())));
  std::vector<float> floats(blocks.size() / bytes(type) * info(type).block_values);
  std::transform(values.begin(), values.end(), floats.begin(),
                 [](double value) { return static_cast<float>(value); });
  quantize(type, floats, blocks);
  return blocks;
}

}  // namespace

std::vector<double> to_values(ElementType type, std::span<const std::byte> elements) {
  if (is_block_format(type)) return block_values(type, elements);
  std::vector<double> values(elements.size() / bytes(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = value_at(type, elements.data() + i * bytes(type));
  }
  return values;
}

std::vector<std::byte> to_elements(ElementType type, std::span<const double> values) {
  if (is_block_format(type)) return to_blocks(type, values);
  std::vector<std::byte> elements(values.size() * bytes(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    put_value(type, values[i], elements.data() + i * bytes(type));
  }
  return elements;
}

double unit_in_last_place(ElementType type, double value) noexcept {
  struct Format {
    int digits;        // of the significand
    int min_exponent;  // of the smallest normal number
  };
  const Format format = type == ElementType::f32    ? Format{24, -126}
                        : type == ElementType::f16  ? Format{11, -14}
                        : type == ElementType::bf16 ? Format{8, -126}
                                                    : Format{0, 0};
  if (format.digits == 0 || !std::isfinite(value)) return 0;
  const int exponent = value == 0 ? format.min_exponent : std::ilogb(value);
  return std::ldexp(1.0, std::max(exponent, format.min_exponent) - format.digits + 1);
}

}  // namespace ptxgen::inline v0
