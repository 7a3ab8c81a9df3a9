// tests/emulator/lane_float_test.cpp - floating-point rows on one lane
#include <catch2/catch.hpp>
#include <cmath>

#include "float_forms.hpp"
#include "lane_runner.hpp"
#include "ptx/op_line.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

struct Spelled {
  std::string text;
  Towards mode = Towards::Nearest;
};
/// `.rn` and so on, and no rounding word where the row lets it out.
std::vector<Spelled> roundings(bool optional, bool nearest_only) {
  std::vector<Spelled> all;
  if (optional) all.push_back({"", Towards::Nearest});
  for (const Towards mode : kEveryRounding) {
    if (mode == Towards::Nearest || !nearest_only) {
      all.push_back({std::string(".") + suffix(mode), mode});
    }
  }
  return all;
}

struct Modifiers {
  bool ftz = false;
  bool sat = false;
  bool relu = false;
  [[nodiscard]] std::string text() const {
    return std::string(ftz ? ".ftz" : "") + (sat ? ".sat" : "") + (relu ? ".relu" : "");
  }
};

std::uint64_t expected(Calculation what, const FloatFormat& f, Towards mode, const Modifiers& m,
                       std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0) {
  const std::uint64_t exact =
      reference(what, f, mode, flush(f, a, m.ftz), flush(f, b, m.ftz), flush(f, c, m.ftz));
  return rectify(f, saturate(f, flush(f, exact, m.ftz), m.sat), m.relu);
}

/// add, sub, mul, fma (and mad) of one format with these modifiers.
void check_arithmetic(const FloatFormat& f, int elements, const Modifiers& m, bool nearest_only,
                      bool mad) {
  const std::string type = "." + type_name(f, elements);
  for (const Spelled& rnd : m.relu ? std::vector<Spelled>{} : roundings(true, nearest_only)) {
    const std::string tail = rnd.text + m.text() + type;
    check_form("add" + tail, f, elements, 2, [&](auto a, auto b, auto) {
      return expected(Calculation::Add, f, rnd.mode, m, a, b);
    });
    check_form("sub" + tail, f, elements, 2, [&](auto a, auto b, auto) {
      return expected(Calculation::Add, f, rnd.mode, m, a, b ^ f.sign());
    });
    check_form("mul" + tail, f, elements, 2, [&](auto a, auto b, auto) {
      return expected(Calculation::Multiply, f, rnd.mode, m, a, b);
    });
  }
  for (const Spelled& rnd : roundings(false, nearest_only)) {
    const Element fma = [&](auto a, auto b, auto c) {
      return expected(Calculation::Fma, f, rnd.mode, m, a, b, c);
    };
    check_form("fma" + rnd.text + m.text() + type, f, elements, 3, fma);
    if (mad) check_form("mad" + rnd.text + m.text() + type, f, elements, 3, fma);
  }
}

double as_f32(std::uint64_t bits) { return value_of(kSingle, bits); }

}  // namespace

TEST_CASE("f32 and f64 sums and products are rounded once, in every form") {
  if (!has_reference()) return skip(kNoReference);
  for (const bool ftz : {false, true}) {
    for (const bool sat : {false, true}) check_arithmetic(kSingle, 1, {ftz, sat}, false, true);
    check_arithmetic(kSingle, 2, {ftz}, false, false);
  }
  check_arithmetic(kDouble, 1, {}, false, true);
}

TEST_CASE("f16 and bf16 sums and products are rounded once, in every form") {
  if (!has_reference()) return skip(kNoReference);
  for (const int elements : {1, 2}) {
    for (const bool ftz : {false, true}) {
      for (const bool sat : {false, true}) {
        check_arithmetic(kHalf, elements, {ftz, sat}, true, false);
      }
      check_arithmetic(kHalf, elements, {ftz, false, true}, true, false);
    }
    check_arithmetic(kBrain, elements, {}, true, false);
    check_arithmetic(kBrain, elements, {false, false, true}, true, false);
  }
}

TEST_CASE("fma.oob is zero where an operand is the out-of-bounds NaN") {
  if (!has_reference()) return skip(kNoReference);
  constexpr std::uint64_t kMark = 0x7ff7;
  for (const FloatFormat& f : {kHalf, kBrain}) {
    for (const int elements : {1, 2}) {
      for (const bool relu : {false, true}) {
        const std::string opcode =
            std::string("fma.rn.oob") + (relu ? ".relu." : ".") + type_name(f, elements);
        check_form(opcode, f, elements, 3, [&](auto a, auto b, auto c) -> std::uint64_t {
          if (a == kMark || b == kMark || c == kMark) return 0;
          return expected(Calculation::Fma, f, Towards::Nearest, {false, false, relu}, a, b, c);
        });
        const LaneRunner lane(form_text(opcode, 16 * elements, 3));
        CHECK(lane({kMark, f.one(), f.one()}) == 0);
        CHECK(lane({f.one(), kMark, f.one()}) == 0);
        CHECK(lane({f.one(), f.one(), kMark}) == 0);
        CHECK(lane({0x7fff, f.one(), f.one()}) == 0x7fff);
      }
    }
  }
}

TEST_CASE("mixed sums and products take half operands at their value") {
  if (!has_reference()) return skip(kNoReference);
  FloatDice dice(seed());
  for (const FloatFormat& half : {kHalf, kBrain}) {
    for (const Spelled& rnd : roundings(true, false)) {
      for (const bool sat : {false, true}) {
        const Modifiers m{false, sat};
        const std::string tail = rnd.text + m.text() + ".f32." + half.name;
        const LaneRunner sum("add" + tail + " %f1, %h1, %f2;");
        const LaneRunner difference("sub" + tail + " %f1, %h1, %f2;");
        const auto wide = [&](std::uint64_t bits) {
          return reference_conversion(kSingle, half, Towards::Nearest, bits);
        };
        const auto check = [&](std::uint64_t a, std::uint64_t b) {
          CHECK(sum({a, b}) == expected(Calculation::Add, kSingle, rnd.mode, m, wide(a), b));
          CHECK(difference({a, b}) ==
                expected(Calculation::Add, kSingle, rnd.mode, m, wide(a), b ^ kSingle.sign()));
          if (rnd.text.empty()) return;
          const LaneRunner fma("fma" + tail + " %f1, %h1, %h2, %f2;");
          const std::uint64_t other = dice.any(half);
          CHECK(fma({a, other, b}) ==
                expected(Calculation::Fma, kSingle, rnd.mode, m, wide(a), wide(other), b));
        };
        for (const std::uint64_t a : corners(half)) {
          check(a, dice.any(kSingle));
          check(a, corners(kSingle)[dice.below(corners(kSingle).size())]);
          check(a, dice.partner(kSingle, wide(a)));
        }
      }
    }
  }
}

TEST_CASE("quotients, reciprocals and roots are rounded correctly, in every form") {
  if (!has_reference()) return skip(kNoReference);
  for (const FloatFormat& f : {kSingle, kDouble}) {
    for (const Spelled& rnd : roundings(false, false)) {
      for (const bool ftz : {false, true}) {
        if (ftz && f.width() == 64) continue;
        const Modifiers m{ftz};
        const std::string tail = rnd.text + m.text() + "." + f.name;
        check_form("div" + tail, f, 1, 2, [&](auto a, auto b, auto) {
          return expected(Calculation::Divide, f, rnd.mode, m, a, b);
        });
        check_form("rcp" + tail, f, 1, 1, [&](auto a, auto, auto) {
          return expected(Calculation::Divide, f, rnd.mode, m, f.one(), a);
        });
        check_form("sqrt" + tail, f, 1, 1, [&](auto a, auto, auto) {
          return expected(Calculation::SquareRoot, f, rnd.mode, m, a);
        });
      }
    }
  }
}

TEST_CASE("abs, neg and copysign work on the sign bit alone") {
  for (const FloatFormat& f : {kSingle, kDouble, kHalf, kBrain}) {
    for (const int elements : {1, 2}) {
      if (elements == 2 && f.width() != 16) continue;
      for (const bool ftz : {false, true}) {
        if (ftz && (f.width() == 64 || std::string_view(f.name) == "bf16")) continue;
        const std::string tail = std::string(ftz ? ".ftz." : ".") + type_name(f, elements);
        check_form("abs" + tail, f, elements, 1,
                   [&](auto a, auto, auto) { return flush(f, a, ftz) & (f.sign() - 1); });
        check_form("neg" + tail, f, elements, 1,
                   [&](auto a, auto, auto) { return flush(f, a, ftz) ^ f.sign(); });
      }
    }
    if (f.width() == 16) continue;
    check_form(std::string("copysign.") + f.name, f, 1, 2,
               [&](auto a, auto b, auto) { return (a & f.sign()) | (b & (f.sign() - 1)); });
  }
}

TEST_CASE("testp tells the classes apart") {
  for (const FloatFormat& f : {kSingle, kDouble}) {
    const std::string registers = f.width() == 64 ? " %p1, %fd1;" : " %p1, %f1;";
    const auto check = [&](const char* word, auto predicate) {
      const LaneRunner lane(std::string("testp.") + word + "." + f.name + registers);
      for (const std::uint64_t bits : corners(f)) {
        INFO(lane.text() << " " << bits);
        const double value = value_of(f, bits);
        const bool subnormal = value != 0 && std::fabs(value) < std::ldexp(1.0, 1 - f.bias());
        CHECK(lane({bits}) == (predicate(value, subnormal) ? 1 : 0));
      }
    };
    check("finite", [](double v, bool) { return std::isfinite(v); });
    check("infinite", [](double v, bool) { return std::isinf(v); });
    check("number", [](double v, bool) { return !std::isnan(v); });
    check("notanumber", [](double v, bool) { return std::isnan(v); });
    check("normal", [](double v, bool s) { return std::isfinite(v) && !s; });
    check("subnormal", [](double, bool s) { return s; });
  }
}

TEST_CASE("min and max order -0 below +0 and treat NaNs as asked") {
  const auto pick = [](const FloatFormat& f, bool larger, bool nan, std::uint64_t a,
                       std::uint64_t b) {
    const double x = value_of(f, a);
    const double y = value_of(f, b);
    if (std::isnan(x) && std::isnan(y)) return f.nan;
    if (std::isnan(x)) return nan ? f.nan : b;
    if (std::isnan(y)) return nan ? f.nan : a;
    if (x == y) return ((std::signbit(x) != larger) ? a : b);
    return (x < y) != larger ? a : b;
  };
  for (const FloatFormat& f : {kSingle, kDouble, kHalf, kBrain}) {
    const bool has_ftz = f.width() == 32 || std::string_view(f.name) == "f16";
    for (const bool larger : {false, true}) {
      const std::string name = larger ? "max" : "min";
      for (const bool ftz : {false, true}) {
        for (const bool nan : {false, true}) {
          for (const bool xorsign : {false, true}) {
            if ((ftz && !has_ftz) || (f.width() == 64 && (nan || xorsign))) continue;
            for (const int elements : {1, 2}) {
              if (elements == 2 && f.width() != 16) continue;
              const std::string tail = std::string(ftz ? ".ftz" : "") + (nan ? ".NaN" : "") +
                                       (xorsign ? ".xorsign.abs." : ".") + type_name(f, elements);
              check_form(name + tail, f, elements, 2, [&](auto a, auto b, auto) {
                a = flush(f, a, ftz);
                b = flush(f, b, ftz);
                if (!xorsign) return pick(f, larger, nan, a, b);
                const std::uint64_t magnitude = f.sign() - 1;
                const std::uint64_t found = pick(f, larger, nan, a & magnitude, b & magnitude);
                return f.is_nan(found) ? found : found | ((a ^ b) & f.sign());
              });
            }
          }
          if (f.width() != 32) continue;
          for (const bool abs : {false, true}) {
            const std::string tail =
                std::string(ftz ? ".ftz" : "") + (nan ? ".NaN" : "") + (abs ? ".abs.f32" : ".f32");
            check_form(name + tail, f, 1, 3, [&](auto a, auto b, auto c) {
              const std::uint64_t keep = abs ? f.sign() - 1 : ~std::uint64_t{0};
              a = flush(f, a, ftz) & keep;
              b = flush(f, b, ftz) & keep;
              c = flush(f, c, ftz) & keep;
              return pick(f, larger, nan, pick(f, larger, nan, a, b), c);
            });
          }
        }
      }
    }
  }
}

TEST_CASE("results of known bits") {
  const LaneRunner add("add.f32 %f1, %f2, %f3;");
  CHECK(add({0x3f800000, 0x33800000}) == 0x3f800000);  // a tie, to even
  CHECK(add({0x3f800001, 0x33800000}) == 0x3f800002);
  CHECK(add({0x7f800000, 0xff800000}) == 0x7fffffff);
  CHECK(add({0xffc01234, 0x3f800000}) == 0x7fffffff);
  CHECK(LaneRunner("add.rm.f32 %f1, %f2, %f3;")({0x3f800000, 0xbf800000}) == 0x80000000);
  CHECK(LaneRunner("add.f64 %fd1, %fd2, %fd3;")({0x7ff0000000000000, 0xfff0000000000000}) ==
        0xfff8000000000000);
  // 65504 + 16 is half-way to what would be 65536.
  CHECK(LaneRunner("add.f16 %h1, %h2, %h3;")({0x7bff, 0x4c00}) == 0x7c00);
  CHECK(LaneRunner("add.f16 %h1, %h2, %h3;")({0x7bff, 0x4bff}) == 0x7bff);
  // (1 + 2^-10)^2 - 2^-24 is just below a tie that rounding twice would take for one.
  CHECK(as_f32(LaneRunner("fma.rn.f32 %f1, %f2, %f3, %f4;")(
            {0x3f800001, 0x3f800001, 0xbf800002})) == 0x1p-46);
}

TEST_CASE("every floating-point, comparison and conversion row has a function") {
  int rows = 0;
  for (const ptx::OpInfo& row : ptx::op_table()) {
    if (row.group != "Floating-point arithmetic" && row.group != "Comparison and selection" &&
        row.group != "Conversion") {
      continue;
    }
    ++rows;
    int lines = 0;
    for (const OpLine& line : op_lines()) {
      if (line.op != row.op) continue;
      ++lines;
      const OpLine only[] = {line};
      const ptx::Module module = ptx::parse(module_with(only, "sm_100a", ptx::Version{9, 0}));
      const ptx::Instruction* instruction = statement_on(module.functions.back(), first_line());
      INFO(line.text);
      REQUIRE(instruction != nullptr);
      emulator::LaneOp op;
      CHECK(emulator::lane_function(*instruction, op) != nullptr);
    }
    INFO(row.id);
    CHECK(lines > 0);
  }
  CHECK(rows > 150);
}

}  // namespace ptxgen::test
