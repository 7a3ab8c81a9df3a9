// tests/emulator/tensor_core_test.cpp - the sums of tensor cores, bit for bit
#include "emulator/matrix/tensor_core.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "lane_runner.hpp"
#include "matrix_runner.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using emulator::TensorCore;
using emulator::TensorElement;
using ptx::Type;

namespace {

using u32 = std::uint32_t;

// Elements by their bits.
std::vector<TensorElement> elements(Type type, const std::vector<u32>& bits) {
  std::vector<TensorElement> all;
  for (const u32 one : bits) all.push_back(TensorElement::of(type, one));
  return all;
}

u32 sum(std::uint16_t sm, Type type, Type d, const std::vector<u32>& a, const std::vector<u32>& b,
        u32 c) {
  return emulator::tensor_sum(emulator::tensor_core(sm), type, d, elements(type, a),
                              elements(type, b), c);
}

u32 bits(float value) { return std::bit_cast<u32>(value); }

constexpr u32 kOne = 0x3c00;  // f16
constexpr u32 kMinusOne = 0xbc00;

// The rule once more, in doubles: every step is exact but those that the rule truncates or rounds.
struct Term {
  double significand;  // 1 <= |significand| < 2, or less for subnormal values
  int exponent;
};

Term term(double value, int lowest) {
  if (value == 0) return {0, -126};
  int exponent = 0;
  const double significand = 2 * std::frexp(value, &exponent);
  --exponent;
  if (exponent >= lowest) return {significand, exponent};
  return {std::ldexp(significand, exponent - lowest), lowest};
}

double value_of(Type type, u32 word) {
  if (type == Type::e5m2) return value_of(Type::f16, word << 8);
  if (type == Type::e4m3) {
    const int exponent = static_cast<int>(word >> 3 & 15);
    const auto fraction = static_cast<double>(word & 7);
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(fraction + 8, exponent - 10);
    return (word & 0x80) != 0 ? -magnitude : magnitude;
  }
  if (type == Type::f16) {
    const bool infinite = (word & 0x7fff) == 0x7c00;
    const double magnitude = infinite ? HUGE_VAL : test::half_value(word & 0x7fff);
    return (word & 0x8000) != 0 ? -magnitude : magnitude;
  }
  if (type == Type::bf16) word <<= 16;
  if (type == Type::tf32) word &= 0xffffe000;
  return std::bit_cast<float>(word);
}

double rounded(double value, Type d, int float_bits) {
  if (value == 0) return 0;
  const Term t = term(value, d == Type::f16 ? -14 : -126);
  const int bits = d == Type::f16 ? 10 : float_bits;
  const double significand = std::ldexp(t.significand, bits);
  const double kept = d == Type::f16 ? std::nearbyint(significand) : std::trunc(significand);
  const double result = std::ldexp(kept, t.exponent - bits);
  const double limit = d == Type::f16 ? 0x1p16 : 0x1p128;
  return std::fabs(result) >= limit ? std::copysign(HUGE_VAL, result) : result;
}

double reference(int fraction_bits, std::size_t at_once, Type type, Type d,
                 const std::vector<u32>& a, const std::vector<u32>& b, double c,
                 int float_bits = 23) {
  const int lowest = type == Type::e4m3 ? -6 : type == Type::f16 || type == Type::e5m2 ? -14 : -126;
  for (std::size_t first = 0; first < a.size() && std::isfinite(c); first += at_once) {
    std::vector<Term> terms = {term(c, d == Type::f16 ? -14 : -126)};
    for (std::size_t i = first; i < std::min(a.size(), first + at_once); ++i) {
      const Term x = term(value_of(type, a[i]), lowest), y = term(value_of(type, b[i]), lowest);
      terms.push_back({x.significand * y.significand, x.exponent + y.exponent});
    }
    int largest = terms[0].exponent;
    for (const Term& t : terms) largest = std::max(largest, t.exponent);
    double total = 0;
    for (const Term& t : terms) {
      total += std::trunc(std::ldexp(t.significand, fraction_bits + t.exponent - largest));
    }
    c = rounded(std::ldexp(total, largest - fraction_bits), d, float_bits);
  }
  return c;
}

}  // namespace

TEST_CASE("the bits that survive alignment: 24 up to sm_89, 25 from sm_90 on") {
  // 1 - 1 + 2^-25: the exponent is that of 1.
  const std::vector<u32> a = {kOne, kMinusOne}, b = {kOne, kOne};
  constexpr std::uint16_t kOld[] = {75, 80, 86, 89}, kNew[] = {90, 100, 103, 120};
  for (const std::uint16_t sm : kOld) {
    INFO(sm);
    CHECK(sum(sm, Type::f16, Type::f32, a, b, bits(0x1p-25f)) == 0);
    CHECK(sum(sm, Type::f16, Type::f32, a, b, bits(0x1p-24f)) == bits(0x1p-24f));
  }
  for (const std::uint16_t sm : kNew) {
    INFO(sm);
    CHECK(sum(sm, Type::f16, Type::f32, a, b, bits(0x1p-25f)) == bits(0x1p-25f));
    CHECK(sum(sm, Type::f16, Type::f32, a, b, bits(0x1p-26f)) == 0);
  }
}

TEST_CASE("sums of f32 are rounded toward zero, of f16 to nearest even") {
  // 1 + 3 * 2^-25: nearest would be 1 + 2^-23.
  const std::vector<u32> a = {kOne}, b = {kOne};
  CHECK(sum(90, Type::f16, Type::f32, a, b, bits(3 * 0x1p-25f)) == bits(1));
  CHECK(sum(90, Type::f16, Type::f32, {kMinusOne}, b, bits(-3 * 0x1p-25f)) == bits(-1));
  // 2048 + 1 and 2048 + 3.
  CHECK(sum(90, Type::f16, Type::f16, {kOne}, {kOne}, 0x6800) == 0x6800);
  CHECK(sum(90, Type::f16, Type::f16, {0x4200}, {kOne}, 0x6800) == 0x6802);
  CHECK(sum(90, Type::f16, Type::f16, {0x7bff}, {0x4000}, 0) == 0x7c00);
}

TEST_CASE("sixteen products are one sum from sm_90 on, two of eight before") {
  // The first eight are 2^-13 (f16) and cancel with nothing; the last one hides them from c.
  std::vector<u32> a(16, 0), b(16, kOne);
  a[0] = kOne;
  a[8] = kMinusOne;
  // c = 2^-25 is lost beside 1 in a sum of all; in two sums, it is lost in the first.
  CHECK(sum(80, Type::f16, Type::f32, a, b, bits(0x1p-25f)) == 0);
  CHECK(sum(90, Type::f16, Type::f32, a, b, bits(0x1p-25f)) == bits(0x1p-25f));
  // 2^24 + 1 - 2^24: the 1 is lost where the first sum is rounded to f32.
  a[0] = 0x6c00;  // 2^12
  b[0] = 0x6c00;
  a[1] = 0x3800;  // 0.5
  a[8] = 0xec00;
  b[8] = 0x6c00;
  CHECK(sum(80, Type::f16, Type::f32, a, b, 0) == bits(0));
  CHECK(sum(90, Type::f16, Type::f32, a, b, 0) == bits(0.5f));
}

TEST_CASE("8-bit floats: 13 bits on sm_89 and in wgmma, as f16 in mma of sm_90") {
  constexpr u32 kOne8 = 0x38, kMinusOne8 = 0xb8;  // e4m3
  const auto of = [](const TensorCore& core, const std::vector<u32>& a, const std::vector<u32>& b,
                     u32 c) {
    return emulator::tensor_sum(core, Type::e4m3, Type::f32, elements(Type::e4m3, a),
                                elements(Type::e4m3, b), c);
  };
  const TensorCore old = emulator::tensor_core(89), mma = emulator::tensor_core(90),
                   wgmma = emulator::warpgroup_core();
  // 1 - 1 + c: the exponent is that of 1.
  const std::vector<u32> a = {kOne8, kMinusOne8}, b = {kOne8, kOne8};
  for (const TensorCore& core : {old, wgmma}) {
    CHECK(of(core, a, b, bits(0x1p-13f)) == bits(0x1p-13f));
    CHECK(of(core, a, b, bits(0x1p-14f)) == 0);
    // 1 + 2^-13 + 2^-14, whose last bit is lost.
    CHECK(of(core, {kOne8}, {kOne8}, bits(0x1.8p-13f)) == bits(1 + 0x1p-13f));
    CHECK(of(core, {kMinusOne8}, {kOne8}, bits(-0x1.8p-13f)) == bits(-1 - 0x1p-13f));
  }
  CHECK(of(mma, a, b, bits(0x1p-25f)) == bits(0x1p-25f));
  CHECK(of(mma, a, b, bits(0x1p-26f)) == 0);
  CHECK(of(mma, {kOne8}, {kOne8}, bits(0x1.8p-13f)) == bits(1 + 0x1.8p-13f));
  // 32 products are two sums on sm_89.
  std::vector<u32> many(32, 0), ones(32, kOne8);
  many[0] = many[1] = 0x7e;  // 448
  ones[0] = ones[1] = 0x7e;
  many[2] = 0x38;
  many[16] = many[17] = 0xfe;
  ones[16] = ones[17] = 0x7e;
  CHECK(of(old, many, ones, 0) == 0);
  CHECK(of(mma, many, ones, 0) == bits(1));
  // The largest numbers, the least one, and NaN; e5m2 has infinities.
  CHECK(of(mma, {0x7e}, {0x01}, 0) == bits(448.0f * 0x1p-9f));
  CHECK(of(mma, {0x7f}, {0x38}, 0) == 0x7fffffff);
  CHECK(of(mma, {0xff}, {0}, 0) == 0x7fffffff);
  CHECK(sum(90, Type::e5m2, Type::f32, {0x7c}, {0x3c}, 0) == 0x7f800000);
  CHECK(sum(90, Type::e5m2, Type::f32, {0x7d}, {0x3c}, 0) == 0x7fffffff);
  CHECK(sum(90, Type::e5m2, Type::f32, {0x01}, {0x3c}, 0) == bits(0x1p-16f));
}

TEST_CASE("infinities and NaN") {
  CHECK(sum(80, Type::f16, Type::f32, {0x7c00}, {kOne}, 0) == 0x7f800000);
  CHECK(sum(80, Type::f16, Type::f32, {0xfc00}, {kOne}, 0) == 0xff800000);
  CHECK(sum(80, Type::f16, Type::f32, {0x7c00}, {0}, 0) == 0x7fffffff);
  CHECK(sum(80, Type::f16, Type::f16, {0x7c00}, {kOne}, 0xfc00) == 0x7fff);
  CHECK(sum(90, Type::bf16, Type::f32, {0x7f7f}, {0x7f7f}, 0) == 0x7f800000);  // too large
}

TEST_CASE("random sums are those of the rule") {
  struct Row {
    Type type, d;
    std::size_t products;
  };
  constexpr std::uint16_t kBoth[] = {80, 90};
  const Row rows[] = {{Type::f16, Type::f32, 8},  {Type::f16, Type::f32, 16},
                      {Type::f16, Type::f16, 8},  {Type::f16, Type::f16, 16},
                      {Type::bf16, Type::f32, 8}, {Type::bf16, Type::f32, 16},
                      {Type::tf32, Type::f32, 4}, {Type::tf32, Type::f32, 8}};
  std::mt19937_64 random(test::seed());
  // Random bits of 8-bit floats are close enough already; without infinities and NaN.
  const auto narrow = [&](Type type) -> u32 {
    for (;;) {
      const auto word = static_cast<u32>(random()) & 0xff;
      const bool finite = type == Type::e4m3 ? (word & 0x7f) != 0x7f : (word & 0x7c) != 0x7c;
      if (finite) return word;
    }
  };
  // Exponents close to one another, so that bits are lost in part; now and then anything.
  const auto element = [&](Type type) -> u32 {
    if (type == Type::e4m3 || type == Type::e5m2) return narrow(type);
    const auto word = static_cast<u32>(random());
    const u32 exponent = random() % 8 == 0 ? word >> 20 & 0xff : 100 + word % 40;
    switch (type) {
      case Type::f16:
        return (word & 0x83ff) | (random() % 8 == 0 ? word % 31 : 8 + word % 14) << 10;
      case Type::bf16:
        return (word & 0x807f) | std::min(exponent, 254u) << 7;
      default:
        return (word & 0x807fffff) | std::min(exponent, 254u) << 23;
    }
  };
  const auto random_c = [&](Type type) {
    return element(type == Type::f16 ? Type::f16 : Type::f32);
  };
  const std::pair<TensorCore, int> narrow_cores[] = {{emulator::tensor_core(89), 89},
                                                     {emulator::tensor_core(90), 90},
                                                     {emulator::warpgroup_core(), 0}};
  for (const auto& [core, sm] : narrow_cores) {
    for (int i = 0; i < test::count(4000, 200000); ++i) {
      const Type type = i % 2 == 0 ? Type::e4m3 : Type::e5m2;
      const Type d = i % 4 < 2 ? Type::f32 : Type::f16;
      std::vector<u32> a(32), b(32);
      for (u32& one : a) one = element(type);
      for (u32& one : b) one = element(type);
      const u32 c = random_c(d);
      const int bits_kept = sm == 90 ? 25 : 13;
      const double expected = reference(bits_kept, sm == 89 ? 16 : 32, type, d, a, b,
                                        value_of(d, c), sm == 90 ? 23 : 13);
      const u32 got = emulator::tensor_sum(core, type, d, elements(type, a), elements(type, b), c);
      INFO("8-bit floats, sm " << sm << ", case " << i);
      REQUIRE(value_of(d, got) == expected);
    }
  }
  const int cases = test::count(20000, 1000000) / static_cast<int>(std::size(rows));
  std::size_t lossy = 0;
  for (const Row& row : rows) {
    for (const std::uint16_t sm : kBoth) {
      const TensorCore core = emulator::tensor_core(sm);
      const bool split = sm < 90;
      const std::size_t at_once = !split ? 16 : row.type == Type::tf32 ? 4 : 8;
      for (int i = 0; i < cases; ++i) {
        std::vector<u32> a(row.products), b(row.products);
        for (u32& one : a) one = element(row.type);
        for (u32& one : b) one = element(row.type);
        const u32 c = element(row.d == Type::f16 ? Type::f16 : Type::f32);
        const double expected =
            reference(split ? 24 : 25, at_once, row.type, row.d, a, b, value_of(row.d, c));
        const u32 got = emulator::tensor_sum(core, row.type, row.d, elements(row.type, a),
                                             elements(row.type, b), c);
        INFO("sm " << sm << ", " << row.products << " products, case " << i);
        REQUIRE(value_of(row.d, got) == expected);
        double exact = value_of(row.d, c);
        for (std::size_t j = 0; j < a.size(); ++j) {
          exact += value_of(row.type, a[j]) * value_of(row.type, b[j]);
        }
        lossy += static_cast<double>(static_cast<float>(exact)) != expected ? 1 : 0;
      }
    }
  }
  // Otherwise the rule would not have been tried.
  CHECK(lossy > static_cast<std::size_t>(cases));
}

TEST_CASE("mma follows the architecture of the modelled GPU, wmma does not") {
  // d[0][0] = 1 - 1 + 2^-25 on m16n8k8: two products of lane 0.
  test::Registers sources(7, std::vector<std::uint64_t>(32));
  sources[0][0] = kOne | kMinusOne << 16;
  sources[2][0] = kOne | kOne << 16;
  sources[3][0] = bits(0x1p-25f);
  const std::string text =
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r8, %r9}, {%r10}, "
      "{%f16, %f17, %f18, %f19};";
  CHECK(test::run_matrix(text, sources, 4, 80)[0][0] == 0);
  CHECK(test::run_matrix(text, sources, 4, 90)[0][0] == bits(0x1p-25f));
  CHECK(test::run_matrix(text, sources, 4)[0][0] == bits(0x1p-25f));
}
