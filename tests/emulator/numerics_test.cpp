// tests/emulator/numerics_test.cpp - scalar floating point against a multi-precision reference
#include "emulator/lane/numerics.hpp"

#include <catch2/catch.hpp>
#include <ios>

#include "float_reference.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

using namespace emulator::numerics;

constexpr Rounding kRoundings[] = {Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up};

Rounding rounding_of(Towards mode) { return kRoundings[static_cast<std::size_t>(mode)]; }

/// Reports a difference once; a million CHECKs would take longer than the arithmetic.
class Differences {
 public:
  void compare(const char* what, const FloatFormat& format, Towards mode, std::uint64_t expected,
               std::uint64_t found, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0) {
    if (expected == found) return;
    if (++count_ > 5) return;
    INFO(what << "." << suffix(mode) << "." << format.name << std::hex << " a " << a << " b " << b
              << " c " << c << " expected " << expected << " found " << found);
    CHECK(expected == found);
  }
  ~Differences() { CHECK(count_ == 0); }

 private:
  int count_ = 0;
};

template <class F>
void check_two(Differences& differences, const FloatFormat& format, std::uint64_t a,
               std::uint64_t b, Towards mode) {
  using Bits = typename F::Bits;
  const auto x = static_cast<Bits>(a);
  const auto y = static_cast<Bits>(b);
  const Rounding to = rounding_of(mode);
  const std::uint64_t sum = reference(Calculation::Add, format, mode, a, b);
  const std::uint64_t product = reference(Calculation::Multiply, format, mode, a, b);
  differences.compare("add", format, mode, sum, add<F>(x, y, to), a, b);
  differences.compare("mul", format, mode, product, multiply<F>(x, y, to), a, b);
  if constexpr (kHasHost<F>) {
    if (mode != Towards::Nearest) return;
    differences.compare("host add", format, mode, sum, add_nearest<F>(x, y), a, b);
    differences.compare("host mul", format, mode, product, multiply_nearest<F>(x, y), a, b);
  }
}

template <class F>
void check_fma(Differences& differences, const FloatFormat& format, std::uint64_t a,
               std::uint64_t b, std::uint64_t c, Towards mode) {
  using Bits = typename F::Bits;
  const auto x = static_cast<Bits>(a);
  const auto y = static_cast<Bits>(b);
  const auto z = static_cast<Bits>(c);
  const std::uint64_t expected = reference(Calculation::Fma, format, mode, a, b, c);
  differences.compare("fma", format, mode, expected,
                      fused_multiply_add<F>(x, y, z, rounding_of(mode)), a, b, c);
  if constexpr (kHasHost<F>) {
    if (mode != Towards::Nearest) return;
    differences.compare("host fma", format, mode, expected, fused_multiply_add_nearest<F>(x, y, z),
                        a, b, c);
  }
}

template <class F>
void check_division(Differences& differences, const FloatFormat& format, std::uint64_t a,
                    std::uint64_t b, Towards mode) {
  using Bits = typename F::Bits;
  const auto x = static_cast<Bits>(a);
  const auto y = static_cast<Bits>(b);
  const Rounding to = rounding_of(mode);
  const std::uint64_t quotient = reference(Calculation::Divide, format, mode, a, b);
  const std::uint64_t root = reference(Calculation::SquareRoot, format, mode, a);
  differences.compare("div", format, mode, quotient, divide<F>(x, y, to), a, b);
  differences.compare("sqrt", format, mode, root, square_root<F>(x, to), a);
  if constexpr (kHasHost<F>) {
    if (mode != Towards::Nearest) return;
    differences.compare("host div", format, mode, quotient, divide_nearest<F>(x, y), a, b);
    differences.compare("host sqrt", format, mode, root, square_root_nearest<F>(x), a);
  }
}

template <class F>
void check_corners(const FloatFormat& format) {
  Differences differences;
  const auto all = corners(format);
  for (const Towards mode : kEveryRounding) {
    for (const std::uint64_t a : all) {
      for (const std::uint64_t b : all) {
        check_two<F>(differences, format, a, b, mode);
        check_division<F>(differences, format, a, b, mode);
        for (const std::uint64_t c : all) check_fma<F>(differences, format, a, b, c, mode);
      }
    }
  }
}

/// `count` random inputs of each operation; to nearest as often as all other modes together.
template <class F>
void check_random(const FloatFormat& format, int count) {
  using Bits = typename F::Bits;
  Differences differences;
  FloatDice dice(seed());
  for (int i = 0; i < count; ++i) {
    const std::uint64_t a = dice.any(format);
    const std::uint64_t b = dice.partner(format, a);
    for (const Towards mode : {Towards::Nearest, kEveryRounding[1 + i % 3]}) {
      check_two<F>(differences, format, a, b, mode);
      const std::uint64_t m = dice.any(format);
      // The addend often nearly cancels the product.
      const auto product =
          multiply<F>(static_cast<Bits>(a), static_cast<Bits>(m), Rounding::Nearest);
      const std::uint64_t c = dice.below(2) == 0 ? dice.partner(format, product) : dice.any(format);
      check_fma<F>(differences, format, a, m, c, mode);
      if (i % 4 == 0) check_division<F>(differences, format, a, m, mode);
    }
  }
}

template <class To, class From>
void check_conversion(const FloatFormat& to, const FloatFormat& from, int count) {
  Differences differences;
  FloatDice dice(seed() + 1);
  const auto check = [&](std::uint64_t bits) {
    if (to.width() == 64 && from.is_nan(bits)) return;  // cvt.f64 has its own rule
    for (const Towards mode : kEveryRounding) {
      const std::uint64_t expected = reference_conversion(to, from, mode, bits);
      const auto found =
          convert<To, From>(static_cast<typename From::Bits>(bits), rounding_of(mode));
      differences.compare("cvt", to, mode, expected, found, bits);
    }
  };
  for (const std::uint64_t bits : corners(from)) check(bits);
  if (from.width() == 16) {
    for (std::uint64_t bits = 0; bits <= 0xffff; ++bits) check(bits);
    return;
  }
  for (int i = 0; i < count; ++i) {
    // Half of them are near a number of the other format, or half-way between two.
    if (i % 2 == 0) {
      check(dice.any(from));
      continue;
    }
    const std::uint64_t target = dice.any(to);
    if (to.is_nan(target)) continue;
    std::uint64_t bits = reference_conversion(from, to, Towards::Nearest, target);
    const int gap = from.fraction_bits - to.fraction_bits;
    if (gap > 0 && dice.below(2) == 0) bits += std::uint64_t{1} << (gap - 1);
    check((bits + dice.below(3) - 1) & (from.sign() | (from.sign() - 1)));
  }
}

}  // namespace

TEST_CASE("arithmetic on corner values equals the multi-precision reference") {
  if (!has_reference()) return skip(kNoReference);
  SECTION("f16") { check_corners<F16>(kHalf); }
  SECTION("bf16") { check_corners<BF16>(kBrain); }
  SECTION("f32") { check_corners<F32>(kSingle); }
  SECTION("f64") { check_corners<F64>(kDouble); }
}

TEST_CASE("f16 arithmetic on random values equals the multi-precision reference") {
  if (!has_reference()) return skip(kNoReference);
  check_random<F16>(kHalf, 1'000'000);
}
TEST_CASE("bf16 arithmetic on random values equals the multi-precision reference") {
  if (!has_reference()) return skip(kNoReference);
  check_random<BF16>(kBrain, 1'000'000);
}
TEST_CASE("f32 arithmetic on random values equals the multi-precision reference") {
  if (!has_reference()) return skip(kNoReference);
  check_random<F32>(kSingle, 1'000'000);
}
TEST_CASE("f64 arithmetic on random values equals the multi-precision reference") {
  if (!has_reference()) return skip(kNoReference);
  check_random<F64>(kDouble, count(300'000, 1'000'000));
}

TEST_CASE("conversions between float formats equal the multi-precision reference") {
  if (!has_reference()) return skip(kNoReference);
  constexpr int kCount = 1'000'000;
  SECTION("f16 from f32") { check_conversion<F16, F32>(kHalf, kSingle, kCount); }
  SECTION("bf16 from f32") { check_conversion<BF16, F32>(kBrain, kSingle, kCount); }
  SECTION("f16 from f64") { check_conversion<F16, F64>(kHalf, kDouble, kCount); }
  SECTION("bf16 from f64") { check_conversion<BF16, F64>(kBrain, kDouble, kCount); }
  SECTION("f32 from f64") { check_conversion<F32, F64>(kSingle, kDouble, kCount); }
  SECTION("f64 from f32") { check_conversion<F64, F32>(kDouble, kSingle, kCount / 10); }
  SECTION("f32 from f16") { check_conversion<F32, F16>(kSingle, kHalf, 0); }
  SECTION("f32 from bf16") { check_conversion<F32, BF16>(kSingle, kBrain, 0); }
  SECTION("f16 from bf16") { check_conversion<F16, BF16>(kHalf, kBrain, 0); }
  SECTION("bf16 from f16") { check_conversion<BF16, F16>(kBrain, kHalf, 0); }
  SECTION("f64 from f16") { check_conversion<F64, F16>(kDouble, kHalf, 0); }
}

TEST_CASE("integers become floats as the multi-precision reference says") {
  if (!has_reference()) return skip(kNoReference);
  Differences differences;
  FloatDice dice(seed() + 2);
  const int rounds = count(100'000, 1'000'000);
  for (int i = 0; i < rounds; ++i) {
    std::uint64_t magnitude = dice.bits() >> dice.below(64);
    const std::uint64_t low = (std::uint64_t{1} << dice.below(64)) - 1;
    if (dice.below(3) == 0) magnitude |= low;
    if (dice.below(3) == 0) magnitude &= ~low;
    if (dice.below(3) == 0) magnitude = (magnitude & ~low) + (low >> 1) + dice.below(3);  // ties
    const bool negative = dice.below(2) == 0;
    for (const Towards mode : kEveryRounding) {
      const Rounding to = rounding_of(mode);
      const auto check = [&](const FloatFormat& format, std::uint64_t found) {
        differences.compare("cvt from integer", format, mode,
                            reference_from_integer(format, mode, magnitude, negative), found,
                            magnitude, negative ? 1 : 0);
      };
      check(kHalf, from_integer<F16>(magnitude, negative, to));
      check(kBrain, from_integer<BF16>(magnitude, negative, to));
      check(kSingle, from_integer<F32>(magnitude, negative, to));
      check(kDouble, from_integer<F64>(magnitude, negative, to));
    }
  }
}

TEST_CASE("the host's rounding mode does not reach an emulated thread") {
  std::fenv_t before;
  std::fegetenv(&before);
  std::fesetround(FE_UPWARD);
  volatile double tiny = 0x1p-60;
  volatile double sum = 0;
  {
    const HostFloatState state;
    sum = 1.0 + tiny;
    CHECK(std::fegetround() == FE_TONEAREST);
  }
  const int after = std::fegetround();
  std::fesetenv(&before);
  CHECK(sum == 1.0);
  CHECK(after == FE_UPWARD);
}

}  // namespace ptxgen::test
