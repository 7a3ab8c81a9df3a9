// src/kernels/quantization/blocks.cpp - block formats on the host
#include "ptxgen/kernels/quantization/blocks.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "ptxgen/support/error.hpp"
#include "support/format.hpp"
#include "support/half.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::size_t kValues = 32;  // of a block of the small formats, of a part of q4_k and q5_k

using Bytes = const std::uint8_t*;

float half_at(Bytes at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return f16_to_float(bits);
}
std::uint32_t word_at(Bytes at) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

// Value i of 32 in 16 bytes: the low halves first.
int nibble(Bytes bytes, std::size_t i) { return i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4; }

void q4_0(Bytes block, float* values) {
  const float d = half_at(block);
  for (std::size_t i = 0; i < kValues; ++i) {
    values[i] = d * static_cast<float>(nibble(block + 2, i) - 8);
  }
}

void q4_1(Bytes block, float* values) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  for (std::size_t i = 0; i < kValues; ++i) {
    const float product = d * static_cast<float>(nibble(block + 4, i));
    values[i] = product + m;
  }
}

int five_bits(Bytes low, std::uint32_t high, std::size_t i) {
  return nibble(low, i) | static_cast<int>(high >> i & 1) << 4;
}

void q5_0(Bytes block, float* values) {
  const float d = half_at(block);
  for (std::size_t i = 0; i < kValues; ++i) {
    values[i] = d * static_cast<float>(five_bits(block + 6, word_at(block + 2), i) - 16);
  }
}

void q5_1(Bytes block, float* values) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  for (std::size_t i = 0; i < kValues; ++i) {
    const float product = d * static_cast<float>(five_bits(block + 8, word_at(block + 4), i));
    values[i] = product + m;
  }
}

void bytes_times(float d, Bytes quants, float* values) {
  for (std::size_t i = 0; i < kValues; ++i) {
    values[i] = d * static_cast<float>(static_cast<std::int8_t>(quants[i]));
  }
}
void q8_0(Bytes block, float* values) { bytes_times(half_at(block), block + 2, values); }
void q8_1(Bytes block, float* values) { bytes_times(half_at(block), block + 4, values); }

// Scale and minimum of 32 values: 6 bits each, of eight pairs in 12 bytes.
struct ScaleAndMin {
  int scale, min;
};
ScaleAndMin scale_and_min(Bytes s, std::size_t part) {
  if (part < 4) return {s[part] & 63, s[part + 4] & 63};
  return {(s[part + 4] & 15) | (s[part - 4] >> 6) << 4, s[part + 4] >> 4 | (s[part] >> 6) << 4};
}

// `high(part, i)` is the fifth bit of a value, or 0.
template <class High>
void k_block(Bytes block, Bytes quants, const High& high, float* values) {
  const float d = half_at(block);
  const float dmin = half_at(block + 2);
  for (std::size_t part = 0; part < 8; ++part) {
    const auto [scale, min] = scale_and_min(block + 4, part);
    const float step = d * static_cast<float>(scale);
    const float offset = dmin * static_cast<float>(min);
    for (std::size_t i = 0; i < kValues; ++i) {
      const std::uint8_t byte = quants[part / 2 * kValues + i];
      const int q = (part % 2 == 0 ? byte & 15 : byte >> 4) | high(part, i) << 4;
      const float product = step * static_cast<float>(q);
      values[part * kValues + i] = product - offset;
    }
  }
}

void q4_k(Bytes block, float* values) {
  k_block(
      block, block + 16, [](std::size_t, std::size_t) { return 0; }, values);
}

void q5_k(Bytes block, float* values) {
  const auto fifth = [&](std::size_t part, std::size_t i) { return block[16 + i] >> part & 1; };
  k_block(block, block + 48, fifth, values);
}

void q6_k(Bytes block, float* values) {
  const float d = half_at(block + 208);
  for (std::size_t v = 0; v < 256; ++v) {
    const std::size_t half = v / 128, group = v % 128 / 32, i = v % 32;
    const std::uint8_t low_byte = block[64 * half + i + 32 * (group & 1)];
    const int low = group < 2 ? low_byte & 15 : low_byte >> 4;
    const int high = block[128 + 32 * half + i] >> (2 * group) & 3;
    const auto scale = static_cast<std::int8_t>(block[192 + 8 * half + i / 16 + 2 * group]);
    const float step = d * static_cast<float>(scale);
    values[v] = step * static_cast<float>((low | high << 4) - 32);
  }
}

// What a sum over blocks adds up: steps times integers, of which some have an offset.
struct Terms {
  float max_steps;  ///< of the integer and its offset
  bool has_min;
};
Terms terms_of(ElementType type) {
  switch (type) {
    case ElementType::q4_0:
      return {15 + 8, false};
    case ElementType::q4_1:
    case ElementType::q4_k:
      return {15, true};
    case ElementType::q5_0:
      return {31 + 16, false};
    case ElementType::q5_1:
    case ElementType::q5_k:
      return {31, true};
    case ElementType::q6_k:
      return {63 + 32, false};
    default:
      return {128, false};
  }
}

// The step of a value, and its minimum or 0.
std::array<float, 2> step_and_min(ElementType type, Bytes block, std::size_t value) {
  if (type == ElementType::q6_k) {
    const auto scale = static_cast<std::int8_t>(block[192 + value / 16]);
    return {half_at(block + 208) * static_cast<float>(scale), 0};
  }
  const float d = half_at(block);
  if (!terms_of(type).has_min) return {d, 0};
  const float m = half_at(block + 2);
  if (type != ElementType::q4_k && type != ElementType::q5_k) return {d, m};
  const auto [scale, min] = scale_and_min(block + 4, value / kValues);
  return {d * static_cast<float>(scale), m * static_cast<float>(min)};
}

using Decode = void (*)(Bytes, float*);

struct Format {
  ElementType type;
  Decode decode;
  std::array<std::uint8_t, 2> halves;
  std::size_t half_count;
};
constexpr Format kFormats[] = {
    {ElementType::q4_0, q4_0, {0}, 1},    {ElementType::q4_1, q4_1, {0, 2}, 2},
    {ElementType::q5_0, q5_0, {0}, 1},    {ElementType::q5_1, q5_1, {0, 2}, 2},
    {ElementType::q8_0, q8_0, {0}, 1},    {ElementType::q8_1, q8_1, {0, 2}, 2},
    {ElementType::q4_k, q4_k, {0, 2}, 2}, {ElementType::q5_k, q5_k, {0, 2}, 2},
    {ElementType::q6_k, q6_k, {208}, 1}};

const Format* format_of(ElementType type) noexcept {
  for (const Format& format : kFormats) {
    if (format.type == type) return &format;
  }
  return nullptr;
}

void check_sizes(std::string_view call, ElementType type, std::size_t block_bytes,
                 std::size_t values) {
  const ElementInfo& row = info(type);
  if (values % row.block_values == 0 && block_bytes == bytes(type, values)) return;
  throw Error(Stage::Build, "bad-size",
              format_text("{}: {} values do not fit {} B of {}; a block has {} values in {} B",
                          call, values, block_bytes, row.name, row.block_values, row.block_bytes));
}

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// 0 where d is, and where 1 / d overflows.
float inverse_of(float d) {
  const float inverse = 1 / d;
  return std::isinf(inverse) ? 0 : inverse;
}

// Returns the sum of the integers.
int quantize_bytes(std::span<const float> values, float d, std::byte* quants) {
  const float inverse = inverse_of(d);
  int sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto q = static_cast<std::int8_t>(std::round(values[i] * inverse));
    put(quants + i, q);
    sum += q;
  }
  return sum;
}

float largest(std::span<const float> values) {
  const auto less = [](float a, float b) { return std::abs(a) < std::abs(b); };
  return *std::max_element(values.begin(), values.end(), less);
}

void quantize_q8(ElementType type, std::span<const float> values, std::byte* block) {
  const float d = std::abs(largest(values)) / 127;
  put(block, float_to_f16(d));
  const bool has_sum = type == ElementType::q8_1;
  const int sum = quantize_bytes(values, d, block + (has_sum ? 4 : 2));
  if (has_sum) put(block + 2, float_to_f16(d * static_cast<float>(sum)));
}

void quantize_q4_0(std::span<const float> values, std::byte* block) {
  const float d = largest(values) / -8;
  const float inverse = inverse_of(d);
  put(block, float_to_f16(d));
  const auto quant = [&](std::size_t i) {
    return std::min(15u, static_cast<unsigned>(std::fma(values[i], inverse, 8.5f)));
  };
  for (std::size_t i = 0; i < 16; ++i) {
    put(block + 2 + i, static_cast<std::uint8_t>(quant(i) | quant(i + 16) << 4));
  }
}

}  // namespace

std::span<const std::uint8_t> half_fields(ElementType type) noexcept {
  const Format* format = format_of(type);
  if (format == nullptr) return {};
  return std::span(format->halves).first(format->half_count);
}

void dequantize(ElementType type, std::span<const std::byte> blocks, std::span<float> values) {
  const Format* format = format_of(type);
  if (format == nullptr) {
    throw Error(Stage::Build, "bad-parameter",
                format_text("dequantize: {} is no block format", to_string(type)));
  }
  check_sizes("dequantize", type, blocks.size(), values.size());
  const ElementInfo& row = info(type);
  const auto* block = reinterpret_cast<Bytes>(blocks.data());
  for (std::size_t i = 0; i < values.size(); i += row.block_values, block += row.block_bytes) {
    format->decode(block, &values[i]);
  }
  for (float& value : values) {
    if (std::isnan(value)) value = std::bit_cast<float>(0x7fffffffu);
  }
}

void term_magnitudes(ElementType type, std::span<const std::byte> blocks, std::span<float> values) {
  dequantize(type, blocks, values);
  const ElementInfo& row = info(type);
  const float max_steps = terms_of(type).max_steps;
  const auto* block = reinterpret_cast<Bytes>(blocks.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t inside = i % row.block_values;
    const auto [step, min] =
        step_and_min(type, block + i / row.block_values * row.block_bytes, inside);
    values[i] = std::abs(step) * max_steps + std::abs(min);
  }
}

void quantize(ElementType type, std::span<const float> values, std::span<std::byte> blocks) {
  if (type != ElementType::q4_0 && type != ElementType::q8_0 && type != ElementType::q8_1) {
    throw Error(Stage::Build, "bad-parameter",
                format_text("quantize: type is {}; it may be q4_0, q8_0 or q8_1", to_string(type)));
  }
  check_sizes("quantize", type, blocks.size(), values.size());
  std::byte* block = blocks.data();
  for (std::size_t i = 0; i < values.size(); i += kValues, block += bytes(type)) {
    const std::span<const float> part = values.subspan(i, kValues);
    if (type == ElementType::q4_0) {
      quantize_q4_0(part, block);
    } else {
      quantize_q8(type, part, block);
    }
  }
}

}  // namespace ptxgen::inline v0
