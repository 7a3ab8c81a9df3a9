// tests/emulator/float_forms.cpp - trying one floating-point form on many operands
#include "float_forms.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <ios>

#include "lane_runner.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {

std::string form_text(std::string_view opcode, int width, int operands) {
  const std::string prefix = width == 16 ? "%h" : width == 32 ? "%r" : "%rd";
  std::string text = std::string(opcode) + " " + prefix + "1";
  for (int i = 0; i < operands; ++i) text += ", " + prefix + std::to_string(i + 2);
  return text + ";";
}

std::string type_name(const FloatFormat& format, int elements) {
  return std::string(format.name) + (elements == 2 ? "x2" : "");
}

std::uint64_t flush(const FloatFormat& format, std::uint64_t bits, bool ftz) {
  if (!ftz || std::fpclassify(value_of(format, bits)) == FP_ZERO) return bits;
  const double min_normal = std::ldexp(1.0, 1 - format.bias());
  return std::fabs(value_of(format, bits)) < min_normal ? bits & format.sign() : bits;
}
std::uint64_t saturate(const FloatFormat& format, std::uint64_t bits, bool sat) {
  if (!sat) return bits;
  const double value = value_of(format, bits);
  if (std::isnan(value) || value <= 0) return 0;
  return value > 1 ? format.one() : bits;
}
std::uint64_t rectify(const FloatFormat& format, std::uint64_t bits, bool relu) {
  if (!relu) return bits;
  const double value = value_of(format, bits);
  if (std::isnan(value)) return format.nan;
  return value <= 0 ? 0 : bits;
}

void check_form(std::string_view opcode, const FloatFormat& format, int elements, int operands,
                const Element& expected) {
  const int width = format.width();
  const LaneRunner lane(form_text(opcode, width * elements, operands));
  int failures = 0;
  const auto check = [&](const std::uint64_t(&low)[3], const std::uint64_t(&high)[3]) {
    std::vector<std::uint64_t> sources;
    for (int i = 0; i < operands; ++i) {
      sources.push_back(elements == 2 ? high[i] << width | low[i] : low[i]);
    }
    std::uint64_t wanted = expected(low[0], low[1], low[2]);
    if (elements == 2) wanted |= expected(high[0], high[1], high[2]) << width;
    const std::uint64_t found = lane(sources);
    if (found == wanted || ++failures > 3) return;
    INFO(lane.text() << std::hex << " a " << sources[0] << " b " << (operands > 1 ? sources[1] : 0)
                     << " c " << (operands > 2 ? sources[2] : 0));
    CHECK(wanted == found);
  };

  auto all = corners(format);
  FloatDice dice(seed());
  if (operands == 3) {
    // Every pair with a few thirds.
    for (const std::uint64_t a : all) {
      for (const std::uint64_t b : all) {
        for (int i = 0; i < 3; ++i) {
          const std::uint64_t c = all[dice.below(all.size())];
          check({a, b, c}, {b, c, a});
        }
      }
    }
  } else {
    for (const std::uint64_t a : all) {
      for (const std::uint64_t b : all) {
        check({a, b, 0}, {b, a, 0});
        if (operands == 1) break;
      }
    }
  }
  const int rounds = count(1000, 20'000);
  for (int i = 0; i < rounds; ++i) {
    const std::uint64_t a = dice.any(format);
    const std::uint64_t b = dice.partner(format, a);
    const std::uint64_t c = dice.any(format);
    check({a, b, dice.partner(format, b)}, {c, dice.partner(format, c), dice.any(format)});
  }
  CHECK(failures == 0);
}

}  // namespace ptxgen::test
