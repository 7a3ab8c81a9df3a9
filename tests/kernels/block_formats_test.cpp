// tests/kernels/block_formats_test.cpp - values of block formats: host and kernel
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>

#include "kernels/block_device.hpp"
#include "kernels/block_reference.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

std::vector<std::uint32_t> by_host(ElementType type, std::span<const std::byte> blocks) {
  std::vector<float> values(blocks.size() / bytes(type) * info(type).block_values);
  dequantize(type, blocks, values);
  std::vector<std::uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), bits.size() * sizeof bits[0]);
  return bits;
}

template <class T>
std::vector<T> elements(std::span<const std::byte> bytes) {
  std::vector<T> all(bytes.size() / sizeof(T));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

// Bits of f32 rounded to the 16-bit type.
std::vector<std::uint16_t> rounded(const std::vector<std::uint32_t>& values, ElementType type) {
  std::vector<std::uint16_t> all;
  for (const std::uint32_t bits : values) {
    const double value = double{std::bit_cast<float>(bits)};
    all.push_back(type == ElementType::f16 ? half_bits(value) : bfloat_bits(value));
  }
  return all;
}

// Where two lists differ first: an index, or the number of equal elements.
template <class T>
std::size_t first_difference(const std::vector<T>& a, const std::vector<T>& b) {
  const auto pair = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(pair.first - a.begin());
}
template <class T>
void check_equal(const std::vector<T>& results, const std::vector<T>& expected) {
  const std::size_t at = first_difference(results, expected);
  INFO("value " << at << ": " << std::hex << (at < results.size() ? results[at] : 0)
                << ", expected " << (at < expected.size() ? expected[at] : 0));
  CHECK(results == expected);
}

/// A block of zeros but for some bytes, and its values: one for each part of `part` values, but for
/// some.
struct HandMade {
  ElementType type;
  std::map<std::size_t, int> bytes;
  std::size_t part;
  std::vector<float> of_part;
  std::map<std::size_t, float> others;
};

const HandMade kByHand[] = {
    // d = 0x4000 = 2. A half byte of 0 is 2 * (0 - 8) = -16. Byte 0 is 0x7f: value 0 is
    // 2 * (15 - 8) = 14, value 16 is 2 * (7 - 8) = -2. Byte 15 is 0x90: value 31 is 2 * (9 - 8).
    {ElementType::q4_0,
     {{1, 0x40}, {2, 0x7f}, {17, 0x90}},
     32,
     {-16},
     {{0, 14}, {16, -2}, {31, 2}}},
    // d = 0x3800 = 0.5, m = 0xc000 = -2. Byte 1 is 0xe3: value 1 is 0.5 * 3 - 2, value 17 is
    // 0.5 * 14 - 2.
    {ElementType::q4_1, {{1, 0x38}, {3, 0xc0}, {5, 0xe3}}, 32, {-2}, {{1, -0.5f}, {17, 5}}},
    // d = 0xbc00 = -1: 0 is -(0 - 16). The fifth bits are 0x80000004, of values 2 and 31. Byte 2 is
    // 0x51: value 2 is -(16 + 1 - 16), value 18 is -(5 - 16). Value 31 is -(16 + 0 - 16) = -0.
    {ElementType::q5_0,
     {{1, 0xbc}, {2, 0x04}, {5, 0x80}, {8, 0x51}},
     32,
     {16},
     {{2, -1}, {18, 11}, {31, -0.0f}}},
    // d = 0x3c00 = 1, m = 0x4900 = 10. The fifth bits are 0x00018000, of values 15 and 16. Byte 15
    // is 0x23: value 15 is 16 + 3 + 10, value 31 is 2 + 10. Byte 0 is 0: value 16 is 16 + 10.
    {ElementType::q5_1,
     {{1, 0x3c}, {3, 0x49}, {5, 0x80}, {6, 0x01}, {23, 0x23}},
     32,
     {10},
     {{15, 29}, {16, 26}, {31, 12}}},
    // d = 0x0001 = 2^-24, subnormal. 0x80 is -128, 0x7f is 127.
    {ElementType::q8_0,
     {{0, 0x01}, {2, 0x80}, {3, 0x7f}, {33, 0xff}},
     32,
     {0},
     {{0, -0x1p-17f}, {1, 127 * 0x1p-24f}, {31, -0x1p-24f}}},
    // d = 0x3e00 = 1.5. The sum, 0x7e00 = NaN, is not used.
    {ElementType::q8_1,
     {{1, 0x3e}, {3, 0x7e}, {4, 0x03}, {35, 0xfe}},
     32,
     {0},
     {{0, 4.5f}, {31, -3}}},
    // d = 1, dmin = 0.5. Scales are s = {0xc1, 0x02, 0, 0x3f, 0x81, 0, 0xbf, 0x40, 0xf2, 0, 0,
    // 0x1e}
    // from byte 4 on: scales 1, 2, 0, 63, then 2 | 3 << 4 = 50, 0, 0, 14; minima s[4 + j] & 63 =
    // 1, 0, 63, 0, then 15 | (s[4] >> 6) << 4 = 47, 0, 0 | (s[6] >> 6) << 4 = 32,
    // 1 | (s[7] >> 6) << 4 = 17. Zeros are -0.5 * min. Byte 0 of quants is 0x93: value 0 is 1 * 3 -
    // 0.5, value 32 is 2 * 9 - 0. Byte 32 + 31 is 0xf0: value 95 is 0 * 0 - 31.5, value 127 is
    // 63 * 15. Byte 64 is 0x01: value 128 is 50 * 1 - 23.5. Byte 127 is 0xa5: value 223 is
    // 0 * 5 - 16, value 255 is 14 * 10 - 8.5.
    {ElementType::q4_k,
     {{1, 0x3c},
      {3, 0x38},
      {4, 0xc1},
      {5, 0x02},
      {7, 0x3f},
      {8, 0x81},
      {10, 0xbf},
      {11, 0x40},
      {12, 0xf2},
      {15, 0x1e},
      {16, 0x93},
      {79, 0xf0},
      {80, 0x01},
      {143, 0xa5}},
     32,
     {-0.5f, 0, -31.5f, 0, -23.5f, 0, -16, -8.5f},
     {{0, 2.5f}, {32, 18}, {127, 945}, {128, 26.5f}, {255, 131.5f}}},
    // d = 2, dmin = 1. Scales from byte 4 on are 1, 1, 1, 1, minima 0 (bytes 8 to 11), then the low
    // halves 3 of bytes 12 to 15 are scales of parts 4 to 7. Fifth bits: byte 16 is 0x81, of values
    // 0 and 224; byte 16 + 5 is 0x10, of value 128 + 5. Quants: byte 0 is 0x21: value 0 is
    // 2 * (16 + 1), value 32 is 2 * 2; byte 96 is 0x40: value 224 is 6 * (16 + 4). Byte 69 is 0x0f:
    // value 133 is 6 * (16 + 15).
    {ElementType::q5_k,
     {{1, 0x40},
      {3, 0x3c},
      {4, 1},
      {5, 1},
      {6, 1},
      {7, 1},
      {12, 3},
      {13, 3},
      {14, 3},
      {15, 3},
      {16, 0x81},
      {21, 0x10},
      {48, 0x21},
      {117, 0x0f},
      {144, 0x40}},
     32,
     {0, 0, 0, 0, 0, 0, 0, 0},
     {{0, 34}, {32, 4}, {133, 186}, {224, 120}}},
    // d = 0x3800 = 0.5 at byte 208. Scales of 16 values each are 1, -1, 0, 2, then 0, and -128 for
    // the last. Zeros are 0.5 * scale * (0 - 32), which is -0 where the scale is 0. Low byte 3 is
    // 0x5c, high byte 3 is 0xb1 = 10 11 00 01: value 3 is 0.5 * 1 * ((12 | 1 << 4) - 32) = -2.
    // Values 67 (11) and 99 (10) have the scale 0 and are not negative: 0. Low byte 63 is 0x06,
    // high byte 31 is 0x08 = 00 00 10 00: value 63 is 0.5 * 2 * ((6 | 2 << 4) - 32) = 6. Low byte
    // 127 is 0x90, high byte 63 is 0x40 = 01 00 00 00: value 255 is
    // 0.5 * -128 * ((9 | 1 << 4) - 32) = 448.
    {ElementType::q6_k,
     {{3, 0x5c},
      {35, 0x0b},
      {63, 0x06},
      {127, 0x90},
      {131, 0xb1},
      {159, 0x08},
      {191, 0x40},
      {192, 1},
      {193, 0xff},
      {195, 2},
      {207, 0x80},
      {209, 0x38}},
     16,
     {-16, 16, -0.0f, -32, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f,
      -0.0f, 2048},
     {{3, -2}, {63, 6}, {67, 0}, {99, 0}, {255, 448}}}};

std::vector<std::byte> block_of(const HandMade& hand) {
  std::vector<std::byte> block(bytes(hand.type));
  for (const auto& [at, value] : hand.bytes) block[at] = static_cast<std::byte>(value);
  return block;
}
std::vector<std::uint32_t> values_of(const HandMade& hand) {
  std::vector<std::uint32_t> values;
  for (std::size_t v = 0; v < info(hand.type).block_values; ++v) {
    const auto other = hand.others.find(v);
    const float value = other == hand.others.end() ? hand.of_part[v / hand.part] : other->second;
    values.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return values;
}

template <class Call>
std::string message_of(std::string_view code, const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code == code);
    return error.message;
  }
  return "no error";
}

}  // namespace

TEST_CASE("a block by hand of each format") {
  const Rig rig;
  CHECK(std::size(kByHand) == std::size(kBlockTypes));
  for (const HandMade& hand : kByHand) {
    INFO(to_string(hand.type));
    const std::vector<std::byte> block = block_of(hand);
    const std::vector<std::uint32_t> values = values_of(hand);
    check_equal(expected_values(hand.type, block), values);
    check_equal(by_host(hand.type, block), values);
    const auto n = static_cast<std::uint32_t>(values.size());
    check_equal(elements<std::uint32_t>(run_kernel(rig, Dequantize{n, hand.type}, block)), values);
  }
}

TEST_CASE("random blocks have their values on the host and by the kernel, bit for bit") {
  const Rig rig;
  const auto n = static_cast<std::uint32_t>(count(1 << 17, 1 << 21));
  for (const ElementType type : kBlockTypes) {
    INFO(to_string(type));
    Random random(seed());
    const std::vector<std::byte> blocks = random_blocks(type, n / info(type).block_values, random);
    const std::vector<std::uint32_t> values = expected_values(type, blocks);
    check_equal(by_host(type, blocks), values);
    check_equal(elements<std::uint32_t>(run_kernel(rig, Dequantize{n, type}, blocks)), values);
  }
}

TEST_CASE("the kernel rounds values once to 16 bits, on GPUs with and without bf16") {
  constexpr std::uint32_t kN = 1 << 14;
  for (const std::string_view gpu : {"emulator", "emulator:t4"}) {
    const Rig rig{Device::open(gpu)};
    for (const ElementType type : kBlockTypes) {
      Random random(seed() + 1);
      const auto blocks = random_blocks(type, kN / info(type).block_values, random);
      for (const ElementType y : {ElementType::f16, ElementType::bf16}) {
        INFO(to_string(type) << " to " << to_string(y) << " by " << gpu);
        check_equal(elements<std::uint16_t>(run_kernel(rig, Dequantize{kN, type, y}, blocks)),
                    rounded(expected_values(type, blocks), y));
      }
    }
  }
}

TEST_CASE("blocks on any two bytes, values on any element, and a part of the last block") {
  const Rig rig;
  constexpr std::uint32_t kN = 3 * 256 + 96;
  for (const ElementType type : kBlockTypes) {
    Random random(seed() + 2);
    const auto blocks = random_blocks(type, bytes(type, kN) / bytes(type), random);
    auto values = expected_values(type, blocks);
    values.resize(kN);
    for (const Distances at : {Distances{2, 4}, Distances{6, 8}, Distances{14, 12}}) {
      INFO(to_string(type) << ", blocks " << at.blocks << " B, values " << at.floats << " B off");
      const auto wide = run_kernel(rig, Dequantize{kN, type}, blocks, at);
      check_equal(elements<std::uint32_t>(wide), values);
      const Dequantize halves{kN, type, ElementType::f16};
      const auto narrow = run_kernel(rig, halves, blocks, {at.blocks, at.floats / 2});
      check_equal(elements<std::uint16_t>(narrow), rounded(values, ElementType::f16));
    }
  }
}

TEST_CASE("which types are block formats, and where their f16 fields are") {
  std::vector<ElementType> formats;
  for (std::size_t i = 0; i < std::size(kElementTypes); ++i) {
    const auto type = static_cast<ElementType>(i);
    if (is_block_format(type)) formats.push_back(type);
    const auto fields = half_fields(type);
    const auto expected = is_block_format(type) ? half_offsets(type) : std::vector<std::size_t>{};
    INFO(to_string(type));
    CHECK(std::vector<std::size_t>(fields.begin(), fields.end()) == expected);
  }
  CHECK(formats == std::vector<ElementType>(std::begin(kBlockTypes), std::end(kBlockTypes)));
}

TEST_CASE("dequantize refuses other types, and sizes that do not fit") {
  std::vector<std::byte> blocks(144);
  std::vector<float> values(256);
  const auto refused = [&](std::string_view code, ElementType type, std::size_t block_bytes,
                           std::size_t count) {
    return message_of(code, [&] {
      dequantize(type, std::span(blocks).first(block_bytes), std::span(values).first(count));
    });
  };
  CHECK(refused("bad-parameter", ElementType::f16, 4, 2) == "dequantize: f16 is no block format");
  CHECK(refused("bad-parameter", ElementType::b8, 0, 0) == "dequantize: b8 is no block format");
  CHECK(refused("bad-size", ElementType::q4_k, 143, 256) ==
        "dequantize: 256 values do not fit 143 B of q4_k; a block has 256 values in 144 B");
  CHECK(refused("bad-size", ElementType::q4_k, 144, 255) ==
        "dequantize: 255 values do not fit 144 B of q4_k; a block has 256 values in 144 B");
  CHECK(refused("bad-size", ElementType::q4_0, 18, 64) ==
        "dequantize: 64 values do not fit 18 B of q4_0; a block has 32 values in 18 B");
  CHECK(refused("", ElementType::q4_0, 0, 0) == "no error");
}

TEST_CASE("the kernel refuses numbers of values and types that it does not know") {
  const auto build = [](const Dequantize& spec) {
    return message_of("bad-parameter", [&] { (void)spec.build(ptx::target("sm_90")); });
  };
  CHECK(build({33, ElementType::q4_0}) == "n is 33, not a multiple of 32");
  CHECK(build({0, ElementType::q4_0}) == "n is 0, outside 32..4294967264, multiples of 32");
  CHECK(build({32, ElementType::f32}) ==
        "type may be q4_0|q4_1|q5_0|q5_1|q8_0|q8_1|q4_k|q5_k|q6_k");
  CHECK(build({32, ElementType::q4_0, ElementType::q8_0}) == "y may be f32|f16|bf16");
}
