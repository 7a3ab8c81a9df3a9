// tests/kernels/block_reference.cpp - block formats value by value, from their definition
#include "kernels/block_reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace ptxgen::test {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// One rounding each: products and sums of floats are exact, or rounded harmlessly, in double.
float times(float a, float b) { return static_cast<float>(double{a} * b); }
float plus(float a, float b) { return static_cast<float>(double{a} + b); }
float minus(float a, float b) { return static_cast<float>(double{a} - b); }
float over(float a, float b) { return static_cast<float>(double{a} / b); }

/// A block as a string of bits, the low bit of a byte first.
class Bits {
 public:
  explicit Bits(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // `count` bits from bit `first` after the start of byte `byte`.
  [[nodiscard]] int get(std::size_t byte, std::size_t first, std::size_t count) const {
    int value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t bit = 8 * byte + first + i;
      const auto bits = std::to_integer<unsigned>(bytes_[bit / 8]);
      if ((bits & (1u << bit % 8)) != 0) value += 1 << i;
    }
    return value;
  }
  [[nodiscard]] int signed_byte(std::size_t byte) const {
    const int value = get(byte, 0, 8);
    return value < 128 ? value : value - 256;
  }
  [[nodiscard]] float half(std::size_t byte) const {
    const int fraction = get(byte, 0, 10), exponent = get(byte, 10, 5);
    const double sign = get(byte, 15, 1) == 1 ? -1 : 1;
    if (exponent == 31) return fraction == 0 ? static_cast<float>(sign) * kInfinity : NAN;
    const double size =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return static_cast<float>(sign * size);
  }

 private:
  std::span<const std::byte> bytes_;
};

// 32 values in 16 bytes from `at` on: values 0 to 15 in the low halves, 16 to 31 in the high ones.
int nibble(const Bits& block, std::size_t at, std::size_t v) {
  return block.get(at + v % 16, v / 16 * 4, 4);
}

float small_value(ElementType type, const Bits& block, std::size_t v) {
  const auto q = [](int integer) { return static_cast<float>(integer); };
  const float d = block.half(0);
  switch (type) {
    case ElementType::q4_0:
      return times(d, q(nibble(block, 2, v) - 8));
    case ElementType::q4_1:
      return plus(times(d, q(nibble(block, 4, v))), block.half(2));
    case ElementType::q5_0:
      return times(d, q(nibble(block, 6, v) + 16 * block.get(2, v, 1) - 16));
    case ElementType::q5_1:
      return plus(times(d, q(nibble(block, 8, v) + 16 * block.get(4, v, 1))), block.half(2));
    case ElementType::q8_0:
      return times(d, q(block.signed_byte(2 + v)));
    default:  // q8_1
      return times(d, q(block.signed_byte(4 + v)));
  }
}

// The six-bit scale (first) and minimum of values 32 j to 32 j + 31, in 12 bytes from byte 4 on.
std::pair<int, int> scale_and_min(const Bits& block, std::size_t j) {
  if (j < 4) return {block.get(4 + j, 0, 6), block.get(8 + j, 0, 6)};
  return {block.get(8 + j, 0, 4) + 16 * block.get(j, 6, 2),
          block.get(8 + j, 4, 4) + 16 * block.get(4 + j, 6, 2)};
}

float k_value(ElementType type, const Bits& block, std::size_t v) {
  const bool five = type == ElementType::q5_k;
  const std::size_t quants = five ? 48 : 16;
  const int low = block.get(quants + 32 * (v / 64) + v % 32, v % 64 < 32 ? 0 : 4, 4);
  const int q = low + (five ? 16 * block.get(16 + v % 32, v / 32, 1) : 0);
  const auto [scale, min] = scale_and_min(block, v / 32);
  const float step = times(block.half(0), static_cast<float>(scale));
  const float offset = times(block.half(2), static_cast<float>(min));
  return minus(times(step, static_cast<float>(q)), offset);
}

// v = 128 n + 32 g + l.
float q6_k_value(const Bits& block, std::size_t v) {
  const std::size_t n = v / 128, g = v % 128 / 32, l = v % 32;
  const int low = block.get(64 * n + l + (g % 2 == 0 ? 0 : 32), g < 2 ? 0 : 4, 4);
  const int high = block.get(128 + 32 * n + l, 2 * g, 2);
  const int scale = block.signed_byte(192 + 8 * n + l / 16 + 2 * g);
  return times(times(block.half(208), static_cast<float>(scale)),
               static_cast<float>(low + 16 * high - 32));
}

float value_of(ElementType type, const Bits& block, std::size_t v) {
  if (type == ElementType::q6_k) return q6_k_value(block, v);
  const bool small = info(type).block_values == 32;
  return small ? small_value(type, block, v) : k_value(type, block, v);
}

void put_half(std::byte* at, std::uint16_t bits) {
  at[0] = static_cast<std::byte>(bits & 255);
  at[1] = static_cast<std::byte>(bits >> 8);
}

float inverse_of(float d) {
  const float inverse = over(1, d);
  return std::fabs(inverse) == kInfinity ? 0 : inverse;
}

// Halves away from zero.
int nearest(float x) {
  const double size = std::floor(std::fabs(double{x}) + 0.5);
  return static_cast<int>(x < 0 ? -size : size);
}

void q8_block(std::span<const float> x, bool has_sum, std::byte* block) {
  float magnitude = 0;
  for (const float value : x) magnitude = std::max(magnitude, std::fabs(value));
  const float d = over(magnitude, 127);
  int sum = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    const int q = nearest(times(x[i], inverse_of(d)));
    block[(has_sum ? 4 : 2) + i] = static_cast<std::byte>(q & 255);
    sum += q;
  }
  put_half(block, half_bits(d));
  if (has_sum) put_half(block + 2, half_bits(times(d, static_cast<float>(sum))));
}

void q4_block(std::span<const float> x, std::byte* block) {
  float largest = x[0];
  for (const float value : x) {
    if (std::fabs(value) > std::fabs(largest)) largest = value;
  }
  const float d = over(largest, -8);
  const auto quant = [&](std::size_t i) {
    return std::min(15, static_cast<int>(std::floor(std::fma(x[i], inverse_of(d), 8.5f))));
  };
  for (std::size_t i = 0; i < 16; ++i) {
    block[2 + i] = static_cast<std::byte>(quant(i) + 16 * quant(i + 16));
  }
  put_half(block, half_bits(d));
}

}  // namespace

std::vector<std::size_t> half_offsets(ElementType type) {
  switch (type) {
    case ElementType::q4_0:
    case ElementType::q5_0:
    case ElementType::q8_0:
      return {0};
    case ElementType::q6_k:
      return {208};
    default:
      return {0, 2};
  }
}

std::uint16_t rounded_bits(double value, int exponent_bits, int fraction_bits) {
  if (std::isnan(value)) return 0x7fff;
  const unsigned sign = std::signbit(value) ? 0x8000u : 0;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const unsigned infinity = ((1u << exponent_bits) - 1) << fraction_bits;
  const double size = std::fabs(value);
  if (std::isinf(size)) return static_cast<std::uint16_t>(sign | infinity);
  const int exponent = size == 0 ? 1 - bias : std::max(std::ilogb(size), 1 - bias);
  const double units = std::nearbyint(std::ldexp(size, fraction_bits - exponent));
  // The leading 1 of a normal number adds one to the exponent's field.
  const double bits = units + std::ldexp(exponent + bias - 1, fraction_bits);
  return static_cast<std::uint16_t>(sign | static_cast<unsigned>(std::min<double>(bits, infinity)));
}

std::vector<std::uint32_t> expected_values(ElementType type, std::span<const std::byte> blocks) {
  const std::size_t values = info(type).block_values;
  std::vector<std::uint32_t> all;
  for (std::size_t at = 0; at < blocks.size(); at += bytes(type)) {
    const Bits block(blocks.subspan(at, bytes(type)));
    for (std::size_t v = 0; v < values; ++v) {
      const float value = value_of(type, block, v);
      all.push_back(std::isnan(value) ? 0x7fffffffu : std::bit_cast<std::uint32_t>(value));
    }
  }
  return all;
}

std::vector<std::byte> expected_blocks(ElementType type, std::span<const float> values) {
  std::vector<std::byte> blocks(bytes(type, values.size()));
  for (std::size_t i = 0; i < values.size() / 32; ++i) {
    std::byte* block = blocks.data() + i * bytes(type);
    const auto x = values.subspan(32 * i, 32);
    if (type == ElementType::q4_0) {
      q4_block(x, block);
    } else {
      q8_block(x, type == ElementType::q8_1, block);
    }
  }
  return blocks;
}

std::vector<std::byte> random_blocks(ElementType type, std::size_t count, Random& random) {
  constexpr std::uint16_t kHalves[] = {0,      0x8000, 1,      0x8001, 0x03ff, 0x83ff, 0x0400,
                                       0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xffff};
  std::vector<std::byte> blocks(count * bytes(type));
  for (std::byte& byte : blocks) byte = static_cast<std::byte>(random() >> 56);
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* block = blocks.data() + i * bytes(type);
    if (random() % 8 == 0) {
      for (unsigned j = 0; j < bytes(type); ++j) block[j] = std::byte(random() % 2 * 255);
    }
    if (random() % 2 == 0) continue;
    for (const std::size_t at : half_offsets(type)) {
      put_half(block + at, kHalves[random() % std::size(kHalves)]);
    }
  }
  return blocks;
}

}  // namespace ptxgen::test
