// tests/emulator/lane_conversion_test.cpp - cvt between integers and the large float formats
#include <catch2/catch.hpp>
#include <cmath>

#include "float_forms.hpp"
#include "lane_runner.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

__extension__ using Wide = __int128;

struct Integer {
  const char* name;
  int width;
  bool is_signed;
  [[nodiscard]] Wide smallest() const { return is_signed ? -(Wide{1} << (width - 1)) : 0; }
  [[nodiscard]] Wide largest() const { return (Wide{1} << (width - (is_signed ? 1 : 0))) - 1; }
  [[nodiscard]] std::uint64_t bits(Wide value) const {
    return static_cast<std::uint64_t>(value) & static_cast<std::uint64_t>((Wide{1} << width) - 1);
  }
  [[nodiscard]] Wide value(std::uint64_t bits) const {
    return is_signed && (bits >> (width - 1) & 1) != 0 ? Wide{bits} - (Wide{1} << width)
                                                       : Wide{bits};
  }
};
constexpr Integer kIntegers[] = {{"u8", 8, false},   {"u16", 16, false}, {"u32", 32, false},
                                 {"u64", 64, false}, {"s8", 8, true},    {"s16", 16, true},
                                 {"s32", 32, true},  {"s64", 64, true}};

std::string reg(int width, int number) {
  return (width == 8    ? "%b"
          : width == 16 ? "%h"
          : width == 32 ? "%r"
                        : "%rd") +
         std::to_string(number);
}
std::string reg(const FloatFormat& f, int number) {
  return (f.width() == 16 ? "%h" : f.width() == 32 ? "%f" : "%fd") + std::to_string(number);
}

/// The wanted integral value of a double; the host rounds to nearest even.
double rounded(Towards mode, double value) {
  switch (mode) {
    case Towards::Nearest:
      return std::nearbyint(value);
    case Towards::Zero:
      return std::trunc(value);
    case Towards::Down:
      return std::floor(value);
    default:
      return std::ceil(value);
  }
}

/// Values near integers and half-way between, and any others.
std::vector<std::uint64_t> sources_of(const FloatFormat& f) {
  std::vector<std::uint64_t> all = corners(f);
  FloatDice dice(seed());
  const int rounds = count(3000, 100'000);
  for (int i = 0; i < rounds; ++i) {
    std::uint64_t bits = dice.any(f);
    if (i % 2 == 0) {
      const std::uint64_t exponent =
          static_cast<std::uint64_t>(f.bias()) - 2 +
          dice.below(std::min<std::uint64_t>(68, static_cast<std::uint64_t>(f.bias())));
      bits = (bits & (f.sign() | (f.min_normal() - 1))) | exponent << f.fraction_bits;
      // Bits below one half away, so that halves and integers are met.
      const auto unbiased = static_cast<int>(exponent) - f.bias();
      const int drop = f.fraction_bits - unbiased - 1;
      if (drop > 0 && drop <= f.fraction_bits && dice.below(2) == 0) {
        bits &= ~((std::uint64_t{1} << drop) - 1);
      }
    }
    all.push_back(bits);
  }
  return all;
}

}  // namespace

TEST_CASE("integers are cut, extended and clamped") {
  for (const Integer& to : kIntegers) {
    for (const Integer& from : kIntegers) {
      const std::string types = std::string(to.name) + "." + from.name;
      const std::string operands = " " + reg(to.width, 1) + ", " + reg(from.width, 2) + ";";
      const LaneRunner plain("cvt." + types + operands);
      for_sources(plain, count(200, 5000), [&](const std::vector<std::uint64_t>& in) {
        CHECK(plain(in) == to.bits(from.value(in[0])));
      });
      const bool superset = to.smallest() <= from.smallest() && to.largest() >= from.largest();
      if (superset) continue;
      const LaneRunner sat("cvt.sat." + types + operands);
      for_sources(sat, count(200, 5000), [&](const std::vector<std::uint64_t>& in) {
        CHECK(sat(in) ==
              to.bits(std::min(std::max(from.value(in[0]), to.smallest()), to.largest())));
      });
    }
  }
}

TEST_CASE("cvt.pack puts two clamped integers together") {
  const auto clamp = [](std::uint64_t bits, int width, bool is_signed) {
    const Integer to{"", width, is_signed};
    const Wide value = Integer{"", 32, true}.value(bits);
    return to.bits(std::min(std::max(value, to.smallest()), to.largest()));
  };
  for (const bool is_signed : {false, true}) {
    const std::string sign = is_signed ? "s" : "u";
    const LaneRunner pair("cvt.pack.sat." + sign + "16.s32 %r1, %r2, %r3;");
    for_sources(pair, 2000, [&](const std::vector<std::uint64_t>& in) {
      CHECK(pair(in) == (clamp(in[0], 16, is_signed) << 16 | clamp(in[1], 16, is_signed)));
    });
    for (const int width : {8, 4, 2}) {
      const LaneRunner lane("cvt.pack.sat." + sign + std::to_string(width) +
                            ".s32.b32 %r1, %r2, %r3, %r4;");
      for_sources(lane, 2000, [&](const std::vector<std::uint64_t>& in) {
        const std::uint64_t below =
            clamp(in[0], width, is_signed) << width | clamp(in[1], width, is_signed);
        CHECK(lane(in) == ((in[2] << (2 * width) | below) & 0xffffffff));
      });
    }
  }
}

TEST_CASE("floats become integers: rounded, clamped, NaN as the ISA says") {
  const char* const words[] = {".rni", ".rzi", ".rmi", ".rpi"};
  for (const FloatFormat& f : {kSingle, kDouble, kHalf, kBrain}) {
    const auto sources = sources_of(f);
    for (const Integer& to : kIntegers) {
      if (to.width == 8 && std::string_view(f.name) == "bf16") continue;
      for (const Towards mode : kEveryRounding) {
        for (const bool ftz : {false, true}) {
          for (const bool sat : {false, true}) {
            if ((ftz && f.width() != 32) || (sat && std::string_view(f.name) == "bf16")) continue;
            const LaneRunner lane(std::string("cvt") + words[static_cast<int>(mode)] +
                                  (ftz ? ".ftz" : "") + (sat ? ".sat." : ".") + to.name + "." +
                                  f.name + " " + reg(to.width, 1) + ", " + reg(f, 2) + ";");
            int failures = 0;
            for (const std::uint64_t bits : sources) {
              const double value = value_of(f, flush(f, bits, ftz));
              std::uint64_t wanted = 0;
              if (std::isnan(value)) {
                const bool top = f.width() == 64 || to.width == 64;
                wanted = top ? std::uint64_t{1} << (to.width - 1) : 0;
              } else {
                const double integral = rounded(mode, value);
                wanted =
                    integral >= std::ldexp(1.0, 70) ? to.bits(to.largest())
                    : integral <= -std::ldexp(1.0, 70)
                        ? to.bits(to.smallest())
                        : to.bits(std::min(std::max(static_cast<Wide>(integral), to.smallest()),
                                           to.largest()));
              }
              if (lane({bits}) == wanted || ++failures > 3) continue;
              INFO(lane.text() << " of " << value);
              CHECK(lane({bits}) == wanted);
            }
            CHECK(failures == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("integers become floats: rounded, then clamped") {
  if (!has_reference()) return skip(kNoReference);
  for (const FloatFormat& f : {kSingle, kDouble, kHalf, kBrain}) {
    for (const Integer& from : kIntegers) {
      if (from.width == 8 && std::string_view(f.name) == "bf16") continue;
      for (const Towards mode : kEveryRounding) {
        for (const bool sat : {false, true}) {
          if (sat && std::string_view(f.name) == "bf16") continue;
          for (const bool ftz : {false, true}) {
            if (ftz && f.width() != 32) continue;
            const LaneRunner lane(std::string("cvt.") + suffix(mode) + (ftz ? ".ftz" : "") +
                                  (sat ? ".sat." : ".") + f.name + "." + from.name + " " +
                                  reg(f, 1) + ", " + reg(from.width, 2) + ";");
            for_sources(lane, count(300, 20'000), [&](const std::vector<std::uint64_t>& in) {
              const Wide value = from.value(in[0]);
              const auto magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
              const std::uint64_t wanted =
                  saturate(f, reference_from_integer(f, mode, magnitude, value < 0), sat);
              if (lane(in) == wanted) return;
              INFO(lane.text() << " of " << in[0]);
              CHECK(lane(in) == wanted);
            });
          }
        }
      }
    }
  }
}

TEST_CASE("floats become floats: flushed, rounded, clamped") {
  if (!has_reference()) return skip(kNoReference);
  struct Pair {
    const FloatFormat& to;
    const FloatFormat& from;
    int rounding;  // 0 none, 1 required, 2 both
    bool ftz;
    bool sat;
  };
  const Pair pairs[] = {
      {kSingle, kHalf, 0, true, true},    {kDouble, kHalf, 0, false, true},
      {kDouble, kSingle, 0, true, true},  {kSingle, kBrain, 0, true, false},
      {kDouble, kBrain, 0, false, false}, {kHalf, kBrain, 2, false, false},
      {kBrain, kHalf, 2, false, false},   {kSingle, kDouble, 1, true, true},
      {kHalf, kDouble, 1, false, true},   {kBrain, kDouble, 1, false, false},
      {kHalf, kSingle, 1, true, true},    {kBrain, kSingle, 1, true, false},
  };
  for (const Pair& p : pairs) {
    const auto sources = sources_of(p.from);
    std::vector<std::pair<std::string, Towards>> modes;
    if (p.rounding != 1) modes.emplace_back("", Towards::Nearest);
    if (p.rounding != 0) {
      for (const Towards mode : kEveryRounding) {
        modes.emplace_back(std::string(".") + suffix(mode), mode);
      }
    }
    for (const auto& [word, mode] : modes) {
      for (const bool ftz : {false, true}) {
        for (const bool sat : {false, true}) {
          if ((ftz && !p.ftz) || (sat && !p.sat)) continue;
          const LaneRunner lane("cvt" + word + (ftz ? ".ftz" : "") + (sat ? ".sat." : ".") +
                                p.to.name + "." + p.from.name + " " + reg(p.to, 1) + ", " +
                                reg(p.from, 2) + ";");
          int failures = 0;
          for (const std::uint64_t bits : sources) {
            const bool from_single = p.from.width() == 32;
            const bool to_single = p.to.width() == 32;
            const std::uint64_t a = flush(p.from, bits, ftz && from_single);
            std::uint64_t wanted = reference_conversion(p.to, p.from, mode, a);
            if (p.to.width() == 64 && from_single && p.from.is_nan(bits)) {
              // Sign and payload stay, the quiet bit is set.
              wanted = (bits >> 31) << 63 | 0x7ff8000000000000 | (bits & 0x7fffff) << 29;
            }
            wanted = saturate(p.to, flush(p.to, wanted, ftz && to_single), sat);
            if (lane({bits}) == wanted || ++failures > 3) continue;
            INFO(lane.text() << std::hex << " of " << bits);
            CHECK(lane({bits}) == wanted);
          }
          CHECK(failures == 0);
        }
      }
    }
  }
}

TEST_CASE("floats are rounded to integral values of their own format") {
  const char* const words[] = {".rni", ".rzi", ".rmi", ".rpi"};
  for (const FloatFormat& f : {kSingle, kDouble, kHalf, kBrain}) {
    const auto sources = sources_of(f);
    for (int word = -1; word < 4; ++word) {
      for (const bool ftz : {false, true}) {
        for (const bool sat : {false, true}) {
          if ((ftz && f.width() != 32) || (sat && std::string_view(f.name) == "bf16")) continue;
          const LaneRunner lane(std::string("cvt") + (word < 0 ? "" : words[word]) +
                                (ftz ? ".ftz" : "") + (sat ? ".sat." : ".") + f.name + "." +
                                f.name + " " + reg(f, 1) + ", " + reg(f, 2) + ";");
          for (const std::uint64_t bits : sources) {
            const std::uint64_t found = lane({bits});
            const double value = value_of(f, flush(f, bits, ftz));
            INFO(lane.text() << std::hex << " of " << bits << " found " << found);
            if (std::isnan(value)) {
              if (found != (sat ? 0 : f.nan)) CHECK(found == (sat ? 0 : f.nan));
              continue;
            }
            double wanted = word < 0 ? value : rounded(static_cast<Towards>(word), value);
            if (sat) wanted = wanted > 0 ? std::min(wanted, 1.0) : 0.0;
            const double result = value_of(f, found);
            if (result != wanted || std::signbit(result) != std::signbit(wanted)) {
              CHECK(result == wanted);
              CHECK(std::signbit(result) == std::signbit(wanted));
            }
          }
        }
      }
    }
  }
}

}  // namespace ptxgen::test
