// tests/emulator/lane_narrow_test.cpp - cvt to and from f16x2, tf32, fp8, fp6, fp4, ue8m0
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

#include "float_reference.hpp"
#include "lane_runner.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

/// A small format, rounded to by looking for the neighbours among its values.
struct Narrow {
  const char* name;  ///< of two packed ones
  int exponent_bits;
  int fraction_bits;
  std::uint64_t largest;  ///< code of the largest finite value
  bool infinity;
  std::uint64_t nan;  ///< what a NaN becomes

  [[nodiscard]] int width() const { return 1 + exponent_bits + fraction_bits; }
  [[nodiscard]] std::uint64_t sign() const { return std::uint64_t{1} << (width() - 1); }
  /// Of a code without sign, as if all were finite.
  [[nodiscard]] double magnitude(std::uint64_t code) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const auto exponent = static_cast<int>(code >> fraction_bits);
    const std::uint64_t one = std::uint64_t{1} << fraction_bits;
    const auto fraction = static_cast<double>(code & (one - 1));
    if (exponent == 0) return std::ldexp(fraction, 1 - bias - fraction_bits);
    return std::ldexp(fraction + static_cast<double>(one), exponent - bias - fraction_bits);
  }
  [[nodiscard]] double value(std::uint64_t code) const {
    const std::uint64_t low = code & (sign() - 1);
    double result = magnitude(low);
    if (low > largest) result = infinity && low == largest + 1 ? HUGE_VAL : std::nan("");
    return (code & sign()) != 0 ? -result : result;
  }
};
constexpr Narrow kF16{"f16x2", 5, 10, 0x7bff, true, 0x7fff};
constexpr Narrow kBf16{"bf16x2", 8, 7, 0x7f7f, true, 0x7fff};
constexpr Narrow kTf32{"tf32", 8, 10, 0x3fbff, true, 0x3ffff};
constexpr Narrow kE5m2{"e5m2x2", 5, 2, 0x7b, true, 0x7f};
constexpr Narrow kE4m3{"e4m3x2", 4, 3, 0x7e, false, 0x7f};
constexpr Narrow kE3m2{"e3m2x2", 3, 2, 0x1f, false, 0x1f};
constexpr Narrow kE2m3{"e2m3x2", 2, 3, 0x1f, false, 0x1f};
constexpr Narrow kE2m1{"e2m1x2", 2, 1, 0x7, false, 0x7};

struct How {
  char rounding = 'n';  ///< n, z, a (ties away), s (random)
  bool satfinite = false;
  bool relu = false;
  std::uint32_t random = 0;
  int random_bits = 0;
};

std::uint64_t narrowed(const Narrow& f, double x, const How& how) {
  if (std::isnan(x)) return f.nan;
  const std::uint64_t sign = std::signbit(x) ? f.sign() : 0;
  if (how.relu && sign != 0) return 0;
  const double m = std::fabs(x);
  std::uint64_t low = 0;
  std::uint64_t high = f.largest + 1;
  while (high - low > 1) {
    const std::uint64_t middle = (low + high) / 2;
    (f.magnitude(middle) <= m ? low : high) = middle;
  }
  const double below = m - f.magnitude(low);
  const double above = f.magnitude(low + 1) - m;
  bool up = false;
  if (how.rounding == 'n') up = below > above || (below == above && (low & 1) != 0);
  if (how.rounding == 'a') up = below >= above;
  if (how.rounding == 's' && above > 0) {
    const double part = std::floor(std::ldexp(below / (below + above), how.random_bits));
    up = part + how.random >= std::ldexp(1.0, how.random_bits);
  }
  if (how.rounding == 's' && above <= 0) up = true;
  if (std::isinf(x)) up = true;
  if (how.rounding == 'z' && !std::isinf(x)) up = false;
  const std::uint64_t code = low + (up ? 1 : 0);
  if (code <= f.largest) return sign | code;
  return sign | (how.satfinite || !f.infinity ? f.largest : f.largest + 1);
}

/// f32 values in and around the range of a format: its numbers, ties, neighbours of both.
std::vector<std::uint64_t> singles_for(const Narrow& f, int random_count) {
  std::vector<std::uint64_t> all = corners(kSingle);
  FloatDice dice(seed());
  const auto add = [&](double value) {
    const auto single = static_cast<float>(value);
    const auto bits = std::bit_cast<std::uint32_t>(single);
    for (const std::uint64_t near : {bits - 1, bits, bits + 1}) {
      all.push_back(near & 0xffffffff);
      all.push_back((near ^ kSingle.sign()) & 0xffffffff);
    }
  };
  for (int i = 0; i < 600; ++i) {
    const std::uint64_t code =
        f.largest < 600 ? static_cast<std::uint64_t>(i) % (f.largest + 1) : dice.below(f.largest);
    add(f.magnitude(code));
    add((f.magnitude(code) + f.magnitude(code + 1)) / 2);
  }
  for (int i = 0; i < random_count; ++i) all.push_back(dice.any(kSingle));
  return all;
}

std::string words(const How& how) {
  const std::string rounding = how.rounding == 'a' ? "rna" : std::string("r") + how.rounding;
  return "cvt." + rounding;
}

double single(std::uint64_t bits) { return value_of(kSingle, bits); }

/// cvt of two f32 into one register, the first uppermost.
void check_pair(const Narrow& f, int stride, const std::string& opcode, const std::string& d,
                const How& how) {
  const LaneRunner lane(opcode + f.name + ".f32 " + d + ", %f1, %f2;");
  const auto values = singles_for(f, count(5000, 1'000'000));
  int failures = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t a = values[i];
    const std::uint64_t b = values[(i * 7 + 3) % values.size()];
    const std::uint64_t wanted =
        narrowed(f, single(a), how) << stride | narrowed(f, single(b), how);
    if (lane({a, b}) == wanted || ++failures > 3) continue;
    INFO(lane.text() << " of " << single(a) << ", " << single(b));
    CHECK(lane({a, b}) == wanted);
  }
  CHECK(failures == 0);
}

}  // namespace

TEST_CASE("f32 become f16, bf16 and pairs of them, satfinite and relu") {
  for (const char rounding : {'n', 'z'}) {
    for (const bool satfinite : {false, true}) {
      for (const bool relu : {false, true}) {
        const How how{rounding, satfinite, relu};
        const std::string relu_first =
            words(how) + (relu ? ".relu" : "") + (satfinite ? ".satfinite." : ".");
        for (const Narrow& f : {kF16, kBf16}) {
          check_pair(f, 16, relu_first, "%r1", how);
          if (!satfinite && !relu) continue;
          const std::string one = std::string(f.name).substr(0, std::string(f.name).size() - 2);
          const LaneRunner lane(relu_first + one + ".f32 %h1, %f1;");
          for (const std::uint64_t a : singles_for(f, 1000)) {
            if (lane({a}) != narrowed(f, single(a), how)) {
              INFO(lane.text() << " of " << single(a));
              CHECK(lane({a}) == narrowed(f, single(a), how));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("tf32 has the upper 19 bits") {
  for (const char rounding : {'a', 'n', 'z'}) {
    for (const bool satfinite : {false, true}) {
      for (const bool relu : {false, true}) {
        if (relu && rounding == 'a') continue;
        const How how{rounding, satfinite, relu};
        const LaneRunner lane(words(how) + (satfinite ? ".satfinite" : "") + (relu ? ".relu" : "") +
                              ".tf32.f32 %r1, %f1;");
        int failures = 0;
        for (const std::uint64_t a : singles_for(kTf32, count(20'000, 1'000'000))) {
          const std::uint64_t wanted =
              std::isnan(single(a)) ? 0x7fffffff : narrowed(kTf32, single(a), how) << 13;
          if (lane({a}) == wanted || ++failures > 3) continue;
          INFO(lane.text() << " of " << single(a));
          CHECK(lane({a}) == wanted);
        }
        CHECK(failures == 0);
      }
    }
  }
}

TEST_CASE("f32 and f16 become fp8, fp6 and fp4") {
  for (const bool relu : {false, true}) {
    const How how{'n', true, relu};
    const std::string opcode = words(how) + ".satfinite" + (relu ? ".relu." : ".");
    for (const Narrow& f : {kE4m3, kE5m2, kE2m3, kE3m2}) check_pair(f, 8, opcode, "%h1", how);
    check_pair(kE2m1, 4, opcode, "%b1", how);
    for (const Narrow& f : {kE4m3, kE5m2}) {
      const LaneRunner lane(opcode + f.name + ".f16x2 %h1, %r1;");
      int failures = 0;
      for (std::uint64_t low = 0; low <= 0xffff; ++low) {
        const std::uint64_t high = low * 40503 & 0xffff;
        const std::uint64_t wanted =
            narrowed(f, value_of(kHalf, high), how) << 8 | narrowed(f, value_of(kHalf, low), how);
        if (lane({high << 16 | low}) != wanted) ++failures;
      }
      INFO(lane.text());
      CHECK(failures == 0);
    }
  }
}

TEST_CASE("fp8, fp6 and fp4 become f16 exactly") {
  for (const bool relu : {false, true}) {
    for (const Narrow& f : {kE4m3, kE5m2, kE2m3, kE3m2, kE2m1}) {
      const int stride = f.width() == 4 ? 4 : 8;
      const LaneRunner lane(std::string("cvt.rn") + (relu ? ".relu" : "") + ".f16x2." + f.name +
                            " %r1, " + (stride == 4 ? "%b2;" : "%h2;"));
      const std::uint64_t codes = f.sign() * 2;
      for (std::uint64_t high = 0; high < codes; ++high) {
        const std::uint64_t low = (high * 37 + 11) % codes;
        const How how{'n', false, relu};
        const std::uint64_t wanted =
            narrowed(kF16, f.value(high), how) << 16 | narrowed(kF16, f.value(low), how);
        INFO(lane.text() << " of " << high << ", " << low);
        CHECK(lane({high << stride | low}) == wanted);
      }
    }
  }
}

TEST_CASE("stochastic rounding goes up when the cut-off bits and the random ones carry") {
  FloatDice dice(seed());
  for (const bool relu : {false, true}) {
    for (const bool satfinite : {false, true}) {
      for (const Narrow& f : {kF16, kBf16}) {
        const LaneRunner lane(std::string("cvt.rs") + (relu ? ".relu" : "") +
                              (satfinite ? ".satfinite." : ".") + f.name +
                              ".f32 %r1, %f1, %f2, %r2;");
        const int n = 23 - f.fraction_bits;
        const auto values = singles_for(f, 2000);
        for (const std::uint64_t a : values) {
          const std::uint64_t b = values[dice.below(values.size())];
          const auto bits = static_cast<std::uint32_t>(dice.bits());
          const std::uint32_t mask = (1u << n) - 1;
          const How high{'s', satfinite, relu, bits >> 16 & mask, n};
          const How low{'s', satfinite, relu, bits & mask, n};
          const std::uint64_t wanted =
              narrowed(f, single(a), high) << 16 | narrowed(f, single(b), low);
          if (lane({a, b, bits}) == wanted) continue;
          INFO(lane.text() << " of " << single(a) << ", " << single(b) << " random " << bits);
          CHECK(lane({a, b, bits}) == wanted);
        }
      }
    }
    for (const Narrow& f : {kE4m3, kE5m2, kE2m3, kE3m2, kE2m1}) {
      std::string type = f.name;
      type.back() = '4';
      const int stride = f.width() == 4 ? 4 : 8;
      const LaneRunner lane(std::string("cvt.rs") + (relu ? ".relu" : "") + ".satfinite." + type +
                            ".f32 " + (stride == 4 ? "%h1" : "%r1") +
                            ", {%f1, %f2, %f3, %f4}, %r2;");
      const auto values = singles_for(f, 2000);
      for (std::size_t i = 0; i + 4 < values.size(); ++i) {
        const auto bits = static_cast<std::uint32_t>(dice.bits());
        std::uint32_t upper = bits >> 16;
        std::uint32_t lower = bits & 0xffff;
        if (stride == 4) {
          upper = (bits >> 16 & 0xff00) | (bits >> 8 & 0xff);
          lower = (bits >> 8 & 0xff00) | (bits & 0xff);
        }
        std::uint64_t wanted = 0;
        for (std::size_t k = 0; k < 4; ++k) {
          const How how{'s', true, relu, k < 2 ? upper : lower, 16};
          wanted = wanted << stride | narrowed(f, single(values[i + k]), how);
        }
        const std::vector<std::uint64_t> in{values[i], values[i + 1], values[i + 2], values[i + 3],
                                            bits};
        if (lane(in) == wanted) continue;
        INFO(lane.text() << " from value " << i << " random " << bits);
        CHECK(lane(in) == wanted);
      }
    }
  }
}

TEST_CASE("ue8m0 is the exponent, and back") {
  for (const bool up : {false, true}) {
    for (const bool satfinite : {false, true}) {
      const std::string opcode =
          std::string("cvt.") + (up ? "rp" : "rz") + (satfinite ? ".satfinite" : "") + ".ue8m0x2.";
      const auto wanted = [&](double x) -> std::uint64_t {
        if (std::isnan(x)) return 0xff;
        const double m = std::fabs(x);
        if (std::isinf(m)) return satfinite ? 0xfe : 0xff;
        if (m <= 0x1p-127) return 0;
        int exponent = std::ilogb(m);
        if (up && m != std::ldexp(1.0, exponent)) ++exponent;
        const auto code = static_cast<std::uint64_t>(std::max(exponent + 127, 0));
        return satfinite ? std::min<std::uint64_t>(code, 0xfe) : code;
      };
      const LaneRunner pair(opcode + "f32 %h1, %f1, %f2;");
      FloatDice dice(seed());
      auto values = corners(kSingle);
      for (int i = 0; i < 20'000; ++i) values.push_back(dice.any(kSingle));
      for (std::size_t i = 0; i + 1 < values.size(); ++i) {
        const std::uint64_t both = wanted(single(values[i])) << 8 | wanted(single(values[i + 1]));
        if (pair({values[i], values[i + 1]}) == both) continue;
        INFO(pair.text() << " of " << single(values[i]) << ", " << single(values[i + 1]));
        CHECK(pair({values[i], values[i + 1]}) == both);
      }
      const LaneRunner packed(opcode + "bf16x2 %h1, %r1;");
      int failures = 0;
      for (std::uint64_t low = 0; low <= 0xffff; ++low) {
        const std::uint64_t high = ~low & 0xffff;
        const std::uint64_t both =
            wanted(value_of(kBrain, high)) << 8 | wanted(value_of(kBrain, low));
        if (packed({high << 16 | low}) != both) ++failures;
      }
      INFO(packed.text());
      CHECK(failures == 0);
    }
  }
  const LaneRunner back("cvt.rn.bf16x2.ue8m0x2 %r1, %h1;");
  for (std::uint64_t code = 0; code <= 0xff; ++code) {
    const std::uint64_t found = back({code << 8 | (0xff - code)});
    const auto value = [](std::uint64_t bits) { return value_of(kBrain, bits); };
    CHECK((found >> 16 == 0x7fff) == (code == 0xff));
    if (code != 0xff) CHECK(value(found >> 16) == std::ldexp(1.0, static_cast<int>(code) - 127));
    if (code != 0) CHECK(value(found & 0xffff) == std::ldexp(1.0, 128 - static_cast<int>(code)));
  }
}

}  // namespace ptxgen::test
