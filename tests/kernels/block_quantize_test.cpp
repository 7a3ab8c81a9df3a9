// tests/kernels/block_quantize_test.cpp - quantize, on the host and by the kernel
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "kernels/block_device.hpp"
#include "kernels/block_reference.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

constexpr ElementType kTypes[] = {ElementType::q8_1, ElementType::q8_0, ElementType::q4_0};
constexpr ElementType kInputs[] = {ElementType::f32, ElementType::f16, ElementType::bf16};

std::vector<std::byte> by_host(ElementType type, std::span<const float> values) {
  std::vector<std::byte> blocks(bytes(type, values.size()));
  quantize(type, values, blocks);
  return blocks;
}

// The bits of values of type `x`, which are exact.
std::vector<std::byte> stored(ElementType x, std::span<const float> values) {
  std::vector<std::byte> all;
  for (const float value : values) {
    std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    if (x == ElementType::f16) bits = half_bits(double{value});
    if (x == ElementType::bf16) bits >>= 16;
    for (unsigned i = 0; i < bytes(x); ++i) all.push_back(std::byte(bits >> (8 * i) & 255));
  }
  return all;
}

// The next value of type `x` towards zero.
float as(ElementType x, float value) {
  if (x == ElementType::f32) return value;
  const bool half = x == ElementType::f16;
  const int digits = half ? 11 : 8;
  const double size = half ? std::min(65504.0, std::fabs(double{value})) : std::fabs(double{value});
  const int exponent = std::max(size == 0 ? 0 : std::ilogb(size), half ? -14 : -126);
  const double units = std::trunc(std::ldexp(size, digits - 1 - exponent));
  const double cut = std::ldexp(units, exponent - digits + 1);
  return static_cast<float>(std::copysign(cut, double{value}));
}

enum class Kind { Normal, Wide, Ties, Equal, Tiny, Sparse };
constexpr Kind kKinds[] = {Kind::Normal, Kind::Wide, Kind::Ties,
                           Kind::Equal,  Kind::Tiny, Kind::Sparse};

float random_value(Kind kind, float scale, Random& random) {
  const auto unit = [&] { return static_cast<float>(random() % 16777216) / 8388608 - 1; };
  const float sign = random() % 2 == 0 ? 1.0f : -1.0f;
  switch (kind) {
    case Kind::Normal:
      return scale * (unit() + unit() + unit());
    case Kind::Wide: {  // any finite f32
      const auto bits = static_cast<std::uint32_t>(random());
      return std::bit_cast<float>((bits & 0x7f800000u) == 0x7f800000u ? bits & 0xbfffffffu : bits);
    }
    case Kind::Ties:  // multiples of half a step where the largest is 127, 63.5, 8 or 4
      return sign * static_cast<float>(random() % 17) / 2;
    case Kind::Equal:
      return sign * scale;
    case Kind::Tiny:
      return sign * static_cast<float>(random() % 64) * 0x1p-133f;
    default:
      return random() % 16 == 0 ? scale * unit() : 0;
  }
}

// Blocks of 32 values of every kind, as type `x` has them.
std::vector<float> random_values(ElementType x, std::size_t blocks, Random& random) {
  std::vector<float> values;
  for (std::size_t i = 0; i < blocks; ++i) {
    const Kind kind = kKinds[random() % std::size(kKinds)];
    const float scale = std::ldexp(1.0f, static_cast<int>(random() % 24) - 12);
    for (int j = 0; j < 32; ++j) values.push_back(as(x, random_value(kind, scale, random)));
    if (kind == Kind::Ties) {
      constexpr float kLargest[] = {127, -63.5f, 8, -8, 4, 8.5f};
      values[32 * i + random() % 32] = kLargest[random() % std::size(kLargest)];
    }
  }
  return values;
}

// The first block that differs, or the number of blocks.
std::size_t first_difference(ElementType type, const std::vector<std::byte>& a,
                             const std::vector<std::byte>& b) {
  const auto pair = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(pair.first - a.begin()) / bytes(type);
}

void check_blocks(ElementType type, std::span<const float> values,
                  const std::vector<std::byte>& blocks, const std::vector<std::byte>& expected) {
  const std::size_t at = first_difference(type, blocks, expected);
  INFO("block " << at << " of " << to_string(type));
  if (32 * at < values.size()) {
    INFO(Catch::Detail::stringify(
        std::vector<float>(values.begin() + static_cast<std::ptrdiff_t>(32 * at),
                           values.begin() + static_cast<std::ptrdiff_t>(32 * at + 32))));
    CHECK(at == values.size() / 32);
  }
  CHECK(blocks.size() == expected.size());
}

// On the host and by the kernel.
void check(const Rig& rig, ElementType type, std::span<const float> values,
           ElementType x = ElementType::f32) {
  const std::vector<std::byte> expected = expected_blocks(type, values);
  check_blocks(type, values, by_host(type, values), expected);
  const Quantize spec{static_cast<std::uint32_t>(values.size()), type, x};
  check_blocks(type, values, run_kernel(rig, spec, stored(x, values)), expected);
}

// A block whose first values are `values`, the others zero.
std::vector<float> block(std::vector<float> values) {
  values.resize(32);
  return values;
}

std::uint16_t half_at(const std::vector<std::byte>& bytes, std::size_t at) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[at]) |
                                    std::to_integer<unsigned>(bytes[at + 1]) << 8);
}

// The integers of the first `n` values of one block.
std::vector<int> quants(ElementType type, const std::vector<std::byte>& block, std::size_t n) {
  std::vector<int> all;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t at = type == ElementType::q8_1 ? 4 : 2;
    all.push_back(type == ElementType::q4_0 ? std::to_integer<int>(block[at + i]) & 15
                                            : static_cast<std::int8_t>(block[at + i]));
  }
  return all;
}

}  // namespace

TEST_CASE("random values have their blocks on the host and by the kernel, bit for bit") {
  const Rig rig;
  const auto blocks = static_cast<std::size_t>(count(4000, 100000));
  for (const ElementType x : kInputs) {
    Random random(seed());
    const std::vector<float> values = random_values(x, blocks, random);
    for (const ElementType type : kTypes) {
      INFO(to_string(x) << " to " << to_string(type));
      check(rig, type, values, x);
    }
  }
}

TEST_CASE("values are within half a step of what their blocks hold") {
  Random random(seed() + 1);
  for (int i = 0; i < count(3000, 100000); ++i) {
    const float scale = std::ldexp(1.0f, static_cast<int>(random() % 24) - 12);
    std::vector<float> x(32);
    for (float& value : x) value = random_value(Kind::Normal, scale, random);
    double magnitude = 0;
    for (const float value : x) magnitude = std::max(magnitude, std::fabs(double{value}));
    for (const ElementType type : kTypes) {
      const bool four = type == ElementType::q4_0;
      std::vector<float> back(32);
      dequantize(type, by_host(type, x), back);
      const double d = magnitude / (four ? 8 : 127);
      // d as f16, and the f32 roundings of d, 1 / d and the product.
      const double of_d = std::max(d * 0x1p-11, 0x1p-25) + d * 3 * 0x1p-24;
      const auto is_close = [&](std::size_t j) {
        const double steps = std::fabs(double{x[j]}) / d;
        // The value opposite to the largest of q4_0 is +8 steps, the largest integer +7.
        const double rounding = four && steps > 7.5 ? 1 : 0.5;
        return std::fabs(double{x[j]} - back[j]) <= d * rounding + (steps + 1) * of_d;
      };
      std::size_t j = 0;
      while (j < 32 && is_close(j)) ++j;
      INFO(to_string(type) << ", d = " << d << ", value " << j);
      CHECK(j == 32);
    }
  }
}

TEST_CASE("halves are rounded away from zero") {
  const Rig rig;
  const float below = std::nextafter(0.5f, 0.0f);
  const auto x =
      block({127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f, -126.5f, below, -below});
  const std::vector<int> expected = {127, 1, 2, 3, -1, -2, -3, 127, -127, 0, 0};
  for (const ElementType type : {ElementType::q8_0, ElementType::q8_1}) {
    CHECK(quants(type, by_host(type, x), 11) == expected);
    check(rig, type, x);
  }
  // The sum: 127 + 1 + 2 + 3 - 1 - 2 - 3 + 127 - 127 = 127, d = 1.
  CHECK(half_at(by_host(ElementType::q8_1, x), 2) == 0x57f0);
}

TEST_CASE("q4_0 rounds halves up, its largest integer is 15, and its fma rounds once") {
  const Rig rig;
  const auto x = block({-8, 0.5f, -0.5f, 1.5f, -1.5f, 6.5f, 7, 7.5f, 8, -7.5f});
  CHECK(quants(ElementType::q4_0, by_host(ElementType::q4_0, x), 10) ==
        std::vector<int>{0, 9, 8, 10, 7, 15, 15, 15, 15, 1});
  check(rig, ElementType::q4_0, x);
  // Values next to -7.5 d, -6.5 d and -5.5 d, whose products with 1 / d, if rounded, are the half.
  Random random(seed() + 2);
  std::vector<float> values;
  while (values.size() < 32 * 64) {
    const float d = 1 + static_cast<float>(random() % 4096) / 4096;
    const float inverse = 1 / d;
    const float half = d * (static_cast<float>(random() % 3) - 7.5f);
    const float value = half + (static_cast<float>(random() % 9) - 4) * 0x1p-22f;
    const volatile float product = value * inverse;
    if (std::floor(product + 8.5f) == std::floor(std::fma(value, inverse, 8.5f))) continue;
    for (const float v : block({value, -8 * d, -value})) values.push_back(v);
  }
  check(rig, ElementType::q4_0, values);
}

TEST_CASE("the scale of q4_0 has the sign of the first of the largest values") {
  const Rig rig;
  std::vector<float> values;
  std::vector<std::uint16_t> scales;
  for (std::size_t first = 0; first < 32; ++first) {
    for (std::size_t second = first + 1; second < 32; ++second) {
      std::vector<float> x(32, 0.25f);
      const bool positive = (first + second) % 2 == 0;
      x[first] = positive ? 4.0f : -4.0f;
      x[second] = -x[first];
      values.insert(values.end(), x.begin(), x.end());
      scales.push_back(positive ? 0xb800 : 0x3800);  // 4 / -8, -4 / -8
    }
  }
  const std::vector<std::byte> blocks = by_host(ElementType::q4_0, values);
  for (std::size_t i = 0; i < scales.size(); ++i) CHECK(half_at(blocks, 18 * i) == scales[i]);
  check(rig, ElementType::q4_0, values);
}

TEST_CASE("blocks of zeros, and of values so small that 1 / d is infinite") {
  const Rig rig;
  std::vector<float> values(32);                             // zeros
  values.insert(values.end(), 32, -0.0f);                    // negative zeros
  values.insert(values.end(), 32, 1e-38f);                   // d = 7.9e-41, 1.25e-39
  values.insert(values.end(), 32, -1.401298464324817e-45f);  // the smallest
  values.insert(values.end(), 32, 127 * 0x1p-127f);          // 1 / d is 2^127
  values.insert(values.end(), 32, 127 * 0x1p-128f);          // 1 / d is infinite
  for (const ElementType type : kTypes) check(rig, type, values);
  const auto q8 = by_host(ElementType::q8_0, values);
  for (std::size_t i = 0; i < 4; ++i) {
    INFO("block " << i);
    const std::vector<std::byte> of_block(q8.begin() + static_cast<std::ptrdiff_t>(34 * i),
                                          q8.begin() + static_cast<std::ptrdiff_t>(34 * i + 34));
    CHECK(of_block == std::vector<std::byte>(34));
  }
  CHECK(q8[34 * 4 + 2] == std::byte{127});
  CHECK(q8[34 * 5 + 2] == std::byte{0});
  // 8 - 8 is 0: the d of zeros is -0 = 0 / -8, and of small values +-0 as well.
  const auto q4 = by_host(ElementType::q4_0, values);
  CHECK(half_at(q4, 0) == 0x8000);
  CHECK(half_at(q4, 18) == 0);
  for (const std::size_t at : {2u, 17u, 20u, 38u, 56u}) CHECK(q4[at] == std::byte{0x88});
}

TEST_CASE("values that are too large for an f16 scale make it infinite") {
  const Rig rig;
  const std::vector<float> values(32, 1e30f);
  for (const ElementType type : kTypes) check(rig, type, values);
  CHECK(half_at(by_host(ElementType::q8_0, values), 0) == 0x7c00);
  CHECK(half_at(by_host(ElementType::q4_0, values), 0) == 0xfc00);
}

TEST_CASE("blocks on any two bytes, and numbers of values that fill no warp") {
  const Rig rig;
  for (const std::uint32_t n : {32u, 96u, 224u, 2080u}) {
    Random random(seed() + n);
    const std::vector<float> values = random_values(ElementType::f32, n / 32, random);
    for (const ElementType type : kTypes) {
      INFO(n << " values to " << to_string(type));
      const std::vector<std::byte> bytes = stored(ElementType::f32, values);
      for (const Distances at : {Distances{2, 16}, Distances{6, 32}}) {
        check_blocks(type, values, run_kernel(rig, Quantize{n, type}, bytes, at),
                     expected_blocks(type, values));
      }
    }
  }
}

TEST_CASE("quantize refuses other types, and sizes that do not fit") {
  std::vector<std::byte> blocks(144);
  const std::vector<float> values(256);
  const auto refused = [&](ElementType type, std::size_t block_bytes, std::size_t count) {
    try {
      quantize(type, std::span(values).first(count), std::span(blocks).first(block_bytes));
      return std::string("no error");
    } catch (const Error& error) {
      return error.code + ": " + error.message;
    }
  };
  CHECK(refused(ElementType::q4_k, 144, 256) ==
        "bad-parameter: quantize: type is q4_k; it may be q4_0, q8_0 or q8_1");
  CHECK(refused(ElementType::f32, 4, 1) ==
        "bad-parameter: quantize: type is f32; it may be q4_0, q8_0 or q8_1");
  CHECK(refused(ElementType::q8_0, 34, 31) ==
        "bad-size: quantize: 31 values do not fit 34 B of q8_0; a block has 32 values in 34 B");
  CHECK(refused(ElementType::q8_1, 36, 64) ==
        "bad-size: quantize: 64 values do not fit 36 B of q8_1; a block has 32 values in 36 B");
  CHECK(refused(ElementType::q4_0, 0, 0) == "no error");
}

TEST_CASE("the kernel that quantizes refuses what it does not support") {
  const auto build = [](const Quantize& spec) -> std::string {
    try {
      (void)spec.build(ptx::target("sm_90"));
      return "no error";
    } catch (const Error& error) {
      return error.code + ": " + error.message;
    }
  };
  CHECK(build({33}) == "bad-parameter: n is 33, not a multiple of 32");
  CHECK(build({32, ElementType::q4_k}) == "bad-parameter: type may be q8_1|q8_0|q4_0");
  CHECK(build({32, ElementType::q8_0, ElementType::b32}) == "bad-parameter: x may be f32|f16|bf16");
}
