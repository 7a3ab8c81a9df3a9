// tests/emulator/warpgroup_values_test.cpp - wgmma of random values against fp64
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <random>

#include "support/harness.hpp"
#include "warpgroup_kernels.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

/// Fields of a float, and how wgmma adds products of it: terms are cut to `cut` bits after the
/// point of the largest, an f32 result keeps `kept` (src/emulator/matrix/tensor_core.hpp).
struct Format {
  const char* type;
  unsigned exponent_bits, fraction_bits, dropped;  // dropped: zeros below the fraction
  int cut, kept;
  [[nodiscard]] int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
constexpr Format kFormats[] = {{"f16", 5, 10, 0, 25, 23},
                               {"bf16", 8, 7, 0, 25, 23},
                               {"tf32", 8, 10, 13, 25, 23},
                               {"e4m3", 4, 3, 0, 13, 13},
                               {"e5m2", 5, 2, 0, 13, 13}};

using Dice = std::mt19937_64;

// Bits of normal numbers and zeros, of magnitudes from 2^-6 to 2^4, and their values.
std::int64_t draw(Dice& dice, const Format& f) {
  if (dice() % 16 == 0) return 0;
  const auto exponent = static_cast<std::uint64_t>(f.bias() - 6 + static_cast<int>(dice() % 10));
  const std::uint64_t fraction = dice() % (1u << f.fraction_bits);
  const std::uint64_t sign = dice() % 2 << (f.exponent_bits + f.fraction_bits);
  return static_cast<std::int64_t>((sign | exponent << f.fraction_bits | fraction) << f.dropped);
}

double value_of(const Format& f, std::int64_t stored) {
  const auto bits = static_cast<std::uint64_t>(stored) >> f.dropped;
  const std::uint64_t fraction = bits & ((1u << f.fraction_bits) - 1);
  const auto exponent = static_cast<int>(bits >> f.fraction_bits & ((1u << f.exponent_bits) - 1));
  if (exponent == 0 && fraction == 0) return 0;
  const double magnitude = std::ldexp(static_cast<double>(fraction + (1u << f.fraction_bits)),
                                      exponent - f.bias() - static_cast<int>(f.fraction_bits));
  return (bits >> (f.exponent_bits + f.fraction_bits) & 1) != 0 ? -magnitude : magnitude;
}

constexpr Format kSingle{"f32", 8, 23, 0, 0, 0};

Matrix drawn(Dice& dice, const Format& f, unsigned rows, unsigned columns) {
  Matrix matrix(rows, columns);
  for (std::int64_t& value : matrix.values) value = draw(dice, f);
  return matrix;
}

/// The largest error of one product, as shares of what the rule allows and of what roundings to f32
/// would allow.
struct Worst {
  double of_rule = 0, of_roundings = 0;
};
Worst check_values(const WarpgroupCase& c, const Format& a, const Format& b, Dice& dice) {
  const Format& d = c.d == "f16" ? kFormats[0] : kSingle;
  const Matrix left = drawn(dice, a, 64, c.k());
  const Matrix right = drawn(dice, b, c.n, c.k());
  const Matrix before = drawn(dice, d, 64, c.n);
  const Matrix got = run_warpgroup(c, left, right, before);
  Worst worst;
  for (unsigned row = 0; row < 64; ++row) {
    for (unsigned column = 0; column < c.n; ++column) {
      double sum = value_of(d, before.at(row, column));
      double magnitude = std::fabs(sum);
      for (unsigned i = 0; i < c.k(); ++i) {
        const double term = value_of(a, left.at(row, i)) * value_of(b, right.at(column, i));
        sum += term;
        magnitude += std::fabs(term);
      }
      // k products and the old sum are cut; then the result, or it is rounded to f16.
      const double cuts = (c.k() + 1) * std::ldexp(1.0, -a.cut);
      const double result = c.d == "f16" ? 0x1p-11 : std::ldexp(1.0, -a.kept);
      const double error = std::fabs(value_of(d, got.at(row, column)) - sum);
      worst.of_rule = std::max(worst.of_rule, error / (magnitude * (cuts + result)));
      worst.of_roundings = std::max(worst.of_roundings, error / (magnitude * 0x1p-24));
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("wgmma of random values of every float type is within the bound of its additions") {
  Dice dice(seed());
  for (const Format& a : kFormats) {
    for (const Format& b : kFormats) {
      const bool narrow = a.cut == 13 && b.cut == 13;
      if (a.type != b.type && !narrow) continue;
      for (const char* d : {"f32", "f16"}) {
        if (std::string(d) == "f16" && !narrow && std::string(a.type) != "f16") continue;
        WarpgroupCase c;
        c.a = a.type;
        c.b = b.type;
        c.d = d;
        c.n = 24;
        c.swizzle = 32;
        c.a_in_registers = dice() % 2 != 0;
        c.bits = true;
        const Worst worst = check_values(c, a, b, dice);
        std::printf("%s: largest error %.2f of the bound, %.2f of one rounding to f32\n",
                    c.text().c_str(), worst.of_rule, worst.of_roundings);
        INFO(c.text() << ", seed " << seed());
        CHECK(worst.of_rule <= 1);
        // Not an exact sum by chance, and more than a rounded one.
        CHECK(worst.of_rule > 0.01);
        CHECK(worst.of_roundings > 0.5);
      }
    }
  }
}
