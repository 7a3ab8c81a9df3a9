// tests/optimize/fma_numerics_test.cpp - fused pairs are rounded once, refused ones twice
#include <array>
#include <bit>
#include <cmath>

#include "emulator/float_reference.hpp"
#include "fusion_cases.hpp"
#include "fusion_runner.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

// The words of one mul and one add.
struct Words {
  std::string rounding;  // "rn", ..., or empty
  bool ftz = false, sat = false;
  [[nodiscard]] std::string text(const std::string& type) const {
    return (rounding.empty() ? "" : "." + rounding) + (ftz ? ".ftz" : "") + (sat ? ".sat" : "") +
           "." + type;
  }
  [[nodiscard]] Towards towards() const {
    for (const Towards mode : kEveryRounding) {
      if (rounding == suffix(mode)) return mode;
    }
    return Towards::Nearest;
  }
};

// What is computed: product and addend with their signs.
struct Shape {
  const char* name;
  const char* text;  // M: mul and its words, A: add, S: sub, N: neg
  bool minus_product, minus_c;
};
constexpr Shape kShapes[] = {
    {"a*b+c", "M %x0, %a, %b; A %d, %x0, %c;", false, false},
    {"c+a*b", "M %x0, %a, %b; A %d, %c, %x0;", false, false},
    {"a*b-c", "M %x0, %a, %b; S %d, %x0, %c;", false, true},
    {"c-a*b", "M %x0, %a, %b; S %d, %c, %x0;", true, false},
    {"-(a*b)+c", "M %x0, %a, %b; N %x1, %x0; A %d, %x1, %c;", true, false},
    {"-(a*b)-c", "M %x0, %a, %b; N %x1, %x0; S %d, %x1, %c;", true, true},
    {"c-(-(a*b))", "M %x0, %a, %b; N %x1, %x0; S %d, %c, %x1;", false, false},
    {"(-a)*b turned", "N %x1, %a; M %x0, %x1, %b; S %d, %c, %x0;", false, false},
    {"a*b-(-c)", "M %x0, %a, %b; N %x1, %c; S %d, %x0, %x1;", false, false},
};

std::string body_of(const Shape& shape, const std::string& type, const Words& mul,
                    const Words& add) {
  std::string text;
  for (const char* c = shape.text; *c != 0; ++c) {
    switch (*c) {
      case 'M':
        text += "mul" + mul.text(type);
        break;
      case 'A':
        text += "add" + add.text(type);
        break;
      case 'S':
        text += "sub" + add.text(type);
        break;
      case 'N':
        text += "neg." + type;
        break;
      default:
        text += *c;
    }
  }
  return text;
}

std::uint64_t flushed(const FloatFormat& f, std::uint64_t bits, bool ftz) {
  const std::uint64_t magnitude = bits & (f.sign() - 1);
  return ftz && magnitude < f.min_normal() ? bits & f.sign() : bits;
}
std::uint64_t clamped(const FloatFormat& f, std::uint64_t bits, bool sat) {
  if (!sat) return bits;
  if (f.is_nan(bits) || (bits & f.sign()) != 0) return 0;
  return bits > f.one() ? f.one() : bits;
}
std::uint64_t minus(const FloatFormat& f, std::uint64_t bits, bool negative) {
  return negative ? bits ^ f.sign() : bits;
}

std::uint64_t once(const Shape& shape, const FloatFormat& f, const Words& add, std::uint64_t a,
                   std::uint64_t b, std::uint64_t c) {
  a = minus(f, flushed(f, a, add.ftz), shape.minus_product);
  c = minus(f, flushed(f, c, add.ftz), shape.minus_c);
  const std::uint64_t sum =
      reference(Calculation::Fma, f, add.towards(), a, flushed(f, b, add.ftz), c);
  return clamped(f, flushed(f, sum, add.ftz), add.sat);
}
// -(a * b) is the negated product, or (-a) * b where it says so: they differ where rounding is
// directed.
std::uint64_t twice(const Shape& shape, const FloatFormat& f, const Words& mul, const Words& add,
                    std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t product = reference(Calculation::Multiply, f, mul.towards(), flushed(f, a, mul.ftz),
                                    flushed(f, b, mul.ftz));
  product = clamped(f, flushed(f, product, mul.ftz), mul.sat);
  product = minus(f, flushed(f, product, add.ftz), shape.minus_product);
  c = minus(f, flushed(f, c, add.ftz), shape.minus_c);
  const std::uint64_t sum = reference(Calculation::Add, f, add.towards(), product, c);
  return clamped(f, flushed(f, sum, add.ftz), add.sat);
}

// Corner values against each other, and triples that cancel, overflow and underflow.
Operands operands_for(const FloatFormat& format, int random) {
  Operands operands;
  const auto add = [&](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    operands.a.push_back(a);
    operands.b.push_back(b);
    operands.c.push_back(c);
  };
  const std::vector<std::uint64_t> all = corners(format);
  FloatDice dice(seed());
  for (const std::uint64_t a : all) {
    for (const std::uint64_t b : all) add(a, b, all[dice.below(all.size())]);
  }
  // Every sum of zeros.
  for (unsigned signs = 0; signs < 8; ++signs) {
    add((signs & 1) != 0 ? format.sign() : 0,
        (signs & 2) != 0 ? format.sign() | format.one() : format.one(),
        (signs & 4) != 0 ? format.sign() : 0);
  }
  for (int i = 0; i < random; ++i) {
    const std::uint64_t a = dice.any(format);
    const std::uint64_t b = dice.partner(format, a);
    const std::uint64_t product = reference(Calculation::Multiply, format, Towards::Nearest, a, b);
    add(a, b, dice.partner(format, product) ^ (dice.below(2) != 0 ? format.sign() : 0));
  }
  return operands;
}

// The same operands in both lanes, those of the upper one in reverse.
Operands doubled(const Operands& single, int width) {
  Operands pairs = single;
  const auto twice = [&](std::vector<std::uint64_t>& list) {
    const std::vector<std::uint64_t> low = list;
    for (std::size_t i = 0; i < list.size(); ++i) list[i] |= low[list.size() - 1 - i] << width;
  };
  twice(pairs.a);
  twice(pairs.b);
  twice(pairs.c);
  return pairs;
}

struct Tried {
  std::string reasons;
  std::size_t different = 0;  // results that one rounding makes different
};

// Fuses the body, runs it, and compares with the model that the decision names.
Tried try_body(const Shape& shape, const FloatFormat& format, int lanes, const Words& mul,
               const Words& add, const Operands& single) {
  const std::string type = std::string(format.name) + (lanes == 2 ? "x2" : "");
  const int width = format.width() * lanes;
  const std::string body = body_of(shape, type, mul, add);
  INFO(shape.name << ": " << body);
  const Fused result = run_pass(ptx::parse(elementwise_kernel(body, width)), "fma_fusion");
  const Operands operands = lanes == 2 ? doubled(single, format.width()) : single;
  const std::vector<std::uint64_t> found = run_elementwise(result.module, width, operands);
  const bool fused = result.reasons() == "+fused";
  Tried tried{result.reasons()};
  std::size_t wrong = 0;
  const std::uint64_t mask = format.sign() | (format.sign() - 1);
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (int lane = 0; lane < lanes; ++lane) {
      const int shift = lane * format.width();
      const std::uint64_t a = operands.a[i] >> shift & mask, b = operands.b[i] >> shift & mask,
                          c = operands.c[i] >> shift & mask;
      const std::uint64_t one = once(shape, format, add, a, b, c);
      const std::uint64_t two = twice(shape, format, mul, add, a, b, c);
      tried.different += one != two;
      if ((found[i] >> shift & mask) == (fused ? one : two) || ++wrong > 3) continue;
      INFO(std::hex << "a " << a << " b " << b << " c " << c << " once " << one << " twice " << two
                    << " found " << (found[i] >> shift & mask));
      CHECK(false);
    }
  }
  CHECK(wrong == 0);
  return tried;
}

struct Kind {
  const FloatFormat* format;
  int lanes;
  bool every_rounding, ftz, sat;
};
constexpr Kind kKinds[] = {
    {&kSingle, 1, true, true, true},   {&kDouble, 1, true, false, false},
    {&kHalf, 1, false, true, true},    {&kHalf, 2, false, true, true},
    {&kBrain, 1, false, false, false}, {&kBrain, 2, false, false, false},
};

}  // namespace

TEST_CASE("every fused form is its sum rounded once, for every type and every word") {
  if (!has_reference()) return skip(kNoReference);
  for (const Kind& kind : kKinds) {
    const Operands operands = operands_for(*kind.format, count(300, 5000));
    std::size_t different = 0;
    for (const char* rounding : {"", "rn", "rz", "rm", "rp"}) {
      if (!kind.every_rounding && rounding[0] == 'r' && rounding[1] != 'n') continue;
      for (const bool ftz : {false, true}) {
        for (const bool sat : {false, true}) {
          if ((ftz && !kind.ftz) || (sat && !kind.sat)) continue;
          for (const Shape& shape : kShapes) {
            const Words mul{rounding, ftz, false}, add{rounding, ftz, sat};
            const Tried tried = try_body(shape, *kind.format, kind.lanes, mul, add, operands);
            CHECK(tried.reasons == "+fused");
            different += tried.different;
          }
        }
      }
    }
    CHECK(different > 0);  // else the operands would not tell the two models apart
  }
}

TEST_CASE("every pair of roundings and of flushing: fused when equal, else as it was") {
  if (!has_reference()) return skip(kNoReference);
  const Operands operands = operands_for(kSingle, count(50, 2000));
  int fused = 0;
  for (const char* first : {"", "rn", "rz", "rm", "rp"}) {
    for (const char* second : {"", "rn", "rz", "rm", "rp"}) {
      for (unsigned bits = 0; bits < 8; ++bits) {
        const Words mul{first, (bits & 1) != 0, (bits & 4) != 0};
        const Words add{second, (bits & 2) != 0, false};
        const Shape& shape = kShapes[bits % 4];
        const Tried tried = try_body(shape, kSingle, 1, mul, add, operands);
        const std::string wanted = mul.sat                          ? "saturated"
                                   : mul.towards() != add.towards() ? "rounding-differs"
                                   : mul.ftz != add.ftz             ? "ftz-differs"
                                                                    : "+fused";
        CHECK(tried.reasons == wanted);
        fused += tried.reasons == "+fused";
      }
    }
  }
  // Six pairs round to nearest and one each in the other directions (4 + 3), twice for ftz.
  CHECK(fused == 14);
}

// Without the reference library: what the host's fma says.
TEST_CASE("f32 and f64 to nearest against the host's fma") {
  FloatDice dice(seed());
  Operands single, both;
  for (int i = 0; i < 4000; ++i) {
    for (const FloatFormat* format : {&kSingle, &kDouble}) {
      Operands& to = format == &kSingle ? single : both;
      to.a.push_back(dice.any(*format));
      to.b.push_back(dice.partner(*format, to.a.back()));
      to.c.push_back(dice.any(*format));
    }
  }
  const auto fused = [](const char* body, int width) {
    const Fused result = run_pass(ptx::parse(elementwise_kernel(body, width)), "fma_fusion");
    REQUIRE(result.reasons() == "+fused");
    return result.module;
  };
  const std::vector<std::uint64_t> narrow =
      run_elementwise(fused("mul.f32 %x0, %a, %b; add.f32 %d, %x0, %c;", 32), 32, single);
  const std::vector<std::uint64_t> wide =
      run_elementwise(fused("mul.f64 %x0, %a, %b; sub.f64 %d, %c, %x0;", 64), 64, both);
  int wrong = 0;
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    const auto f = [](std::uint64_t bits) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    };
    const auto d = [](std::uint64_t bits) { return std::bit_cast<double>(bits); };
    const float x = std::fma(f(single.a[i]), f(single.b[i]), f(single.c[i]));
    const double y = std::fma(-d(both.a[i]), d(both.b[i]), d(both.c[i]));
    wrong +=
        std::isnan(x) ? !std::isnan(f(narrow[i])) : narrow[i] != std::bit_cast<std::uint32_t>(x);
    wrong += std::isnan(y) ? !std::isnan(d(wide[i])) : wide[i] != std::bit_cast<std::uint64_t>(y);
  }
  CHECK(wrong == 0);
}

TEST_CASE("infinities, NaN and signed zeros of fused forms") {
  constexpr std::uint64_t kInf = 0x7f800000, kNan = 0x7fffffff, kMinus = 0x80000000;
  constexpr std::uint64_t kOne = 0x3f800000, kTwo = 0x40000000, kHuge = 0x7f7fffff, kTiny = 1;
  struct Row {
    std::uint64_t a, b, c;
    std::uint64_t add, sub, reverse;  // a*b + c, a*b - c, c - a*b to nearest
  };
  const Row rows[] = {
      // Exact zeros of unlike terms are +0, of like terms they keep the sign.
      {kOne, kOne, kOne | kMinus, 0, kTwo, kTwo | kMinus},
      {kOne, kOne, kOne, kTwo, 0, 0},
      {0, kOne, 0, 0, 0, 0},
      {kMinus, kOne, kMinus, kMinus, 0, 0},
      {kMinus, kOne, 0, 0, kMinus, 0},
      {0, kOne, kMinus, 0, 0, kMinus},
      {0, kOne | kMinus, kMinus, kMinus, 0, 0},
      // 0 * inf, inf - inf, inf + anything, NaN from each place.
      {0, kInf, kOne, kNan, kNan, kNan},
      {kInf, kMinus, kInf, kNan, kNan, kNan},
      {kInf, kOne, kInf, kInf, kNan, kNan},
      {kInf, kOne, kInf | kMinus, kNan, kInf, kInf | kMinus},
      {kInf | kMinus, kTwo, kOne, kInf | kMinus, kInf | kMinus, kInf},
      {kOne, kOne, kInf, kInf, kInf | kMinus, kInf},
      {kNan, kOne, kOne, kNan, kNan, kNan},
      {kOne, kNan | kMinus, kOne, kNan, kNan, kNan},
      {kOne, kOne, 0x7f800001, kNan, kNan, kNan},
      {kNan, kInf, 0, kNan, kNan, kNan},
      // A product beyond the range that the addend brings back, and one that underflows.
      {kHuge, kTwo, kHuge | kMinus, kHuge, kInf, kInf | kMinus},
      {kTiny, kTiny, 0, 0, 0, kMinus},
      {kTiny, kTiny | kMinus, 0, kMinus, kMinus, 0},
  };
  Operands operands;
  for (const Row& row : rows) {
    operands.a.push_back(row.a);
    operands.b.push_back(row.b);
    operands.c.push_back(row.c);
  }
  const auto results = [&](const char* body) {
    const Fused result = run_pass(ptx::parse(elementwise_kernel(body, 32)), "fma_fusion");
    REQUIRE(result.reasons() == "+fused");
    return run_elementwise(result.module, 32, operands);
  };
  const auto add = results("mul.f32 %x0, %a, %b; add.f32 %d, %x0, %c;");
  const auto sub = results("mul.f32 %x0, %a, %b; sub.f32 %d, %x0, %c;");
  const auto reverse = results("mul.f32 %x0, %a, %b; sub.f32 %d, %c, %x0;");
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    INFO("row " << i << std::hex << ": " << rows[i].a << " " << rows[i].b << " " << rows[i].c);
    CHECK(add[i] == rows[i].add);
    CHECK(sub[i] == rows[i].sub);
    CHECK(reverse[i] == rows[i].reverse);
  }
}

TEST_CASE("exact zeros are -0 where rounding is towards minus infinity") {
  const Operands operands{{0x3f800000}, {0x3f800000}, {0x3f800000}};
  for (const char* body : {"mul.rm.f32 %x0, %a, %b; sub.rm.f32 %d, %x0, %c;",
                           "mul.rm.f32 %x0, %a, %b; sub.rm.f32 %d, %c, %x0;"}) {
    const ptx::Module before = ptx::parse(elementwise_kernel(body, 32));
    const Fused result = run_pass(before, "fma_fusion");
    CHECK(result.reasons() == "+fused");
    CHECK(run_elementwise(before, 32, operands).at(0) == 0x80000000);
    CHECK(run_elementwise(result.module, 32, operands).at(0) == 0x80000000);
  }
}

TEST_CASE("nested (a*b+c)*d+e is two fma, each rounded once") {
  const Fused result =
      run_pass(ptx::parse(elementwise_kernel("mul.f32 %x0, %a, %b; add.f32 %x1, %x0, %c;"
                                             "mul.f32 %x2, %x1, %a; add.f32 %d, %x2, %b;",
                                             32)),
               "fma_fusion");
  CHECK(result.reasons() == "+fused +fused");
  Operands operands;
  FloatDice dice(seed());
  for (int i = 0; i < 1000; ++i) {
    for (auto* list : {&operands.a, &operands.b, &operands.c})
      list->push_back(0x3f000000 + dice.below(0x1000000));
  }
  const auto found = run_elementwise(result.module, 32, operands);
  const auto f = [](std::uint64_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  };
  int wrong = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const float a = f(operands.a[i]), b = f(operands.b[i]), c = f(operands.c[i]);
    wrong += f(found[i]) != std::fma(std::fma(a, b, c), a, b);
  }
  CHECK(wrong == 0);
}

TEST_CASE("fused sums are nearer to the exact ones, taken together") {
  const std::string body =
      "mul.f32 %x0, %a, %b; add.f32 %x1, %x0, %c; mul.f32 %x2, %x1, %b; sub.f32 %d, %x2, %a;";
  const ptx::Module before = ptx::parse(elementwise_kernel(body, 32));
  const Fused result = run_pass(before, "fma_fusion");
  CHECK(result.reasons() == "+fused +fused");
  Operands operands;
  FloatDice dice(seed());
  for (int i = 0; i < 5000; ++i) {
    for (auto* list : {&operands.a, &operands.b, &operands.c})
      list->push_back((0x3f000000 + dice.below(0x1000000)) | dice.below(2) << 31);
  }
  const auto unfused = run_elementwise(before, 32, operands);
  const auto fused = run_elementwise(result.module, 32, operands);
  double error_before = 0, error_after = 0;
  for (std::size_t i = 0; i < fused.size(); ++i) {
    const auto f = [](std::uint64_t bits) {
      return double{std::bit_cast<float>(static_cast<std::uint32_t>(bits))};
    };
    const double a = f(operands.a[i]), b = f(operands.b[i]), c = f(operands.c[i]);
    const double exact = (a * b + c) * b - a;
    error_before += std::pow(f(unfused[i]) - exact, 2);
    error_after += std::pow(f(fused[i]) - exact, 2);
  }
  CHECK(error_after < error_before);
}

// mad has no rounding: the same bits, whatever the operands.
TEST_CASE("mad is mul and add, bit for bit") {
  struct Case {
    const char* body;
    int width;
  };
  const Case cases[] = {
      {"mul.lo.s32 %x0, %a, %b; add.s32 %d, %x0, %c;", 32},
      {"mul.hi.s32 %x0, %a, %b; add.u32 %d, %x0, %c;", 32},
      {"mul.hi.u32 %x0, %a, %b; add.s32 %d, %c, %x0;", 32},
      {"mul.hi.s32 %x0, %a, %b; add.sat.s32 %d, %x0, %c;", 32},
      {"mul24.lo.u32 %x0, %a, %b; add.s32 %d, %x0, %c;", 32},
      {"mul24.hi.s32 %x0, %a, %b; add.u32 %d, %x0, %c;", 32},
      {"mul24.hi.s32 %x0, %a, %b; add.sat.s32 %d, %x0, %c;", 32},
      {"mul.lo.u64 %x0, %a, %b; add.s64 %d, %x0, %c;", 64},
      {"mul.hi.s64 %x0, %a, %b; add.s64 %d, %x0, %c;", 64},
      {"mul.lo.u16 %x0, %a, %b; add.s16 %d, %x0, %c;", 16},
      {"mul.hi.s16 %x0, %a, %b; add.s16 %d, %x0, %c;", 16},
      {"{ .reg .b32 %y, %z; cvt.u32.u64 %y, %a; cvt.u32.u64 %z, %b; mul.wide.s32 %x0, %y, %z;"
       "add.u64 %d, %x0, %c; }",
       64},
      {"{ .reg .b32 %y, %z; cvt.u32.u64 %y, %a; cvt.u32.u64 %z, %b; mul.wide.u32 %x0, %y, %z;"
       "add.s64 %d, %c, %x0; }",
       64},
  };
  FloatDice dice(seed());
  for (const Case& one : cases) {
    INFO(one.body);
    Operands operands;
    const std::uint64_t mask =
        one.width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << one.width) - 1;
    for (int i = 0; i < 2000; ++i) {
      for (auto* list : {&operands.a, &operands.b, &operands.c}) {
        const std::uint64_t extremes[] = {0, 1, mask, mask >> 1, (mask >> 1) + 1};
        list->push_back(dice.below(3) == 0 ? extremes[dice.below(5)] : dice.bits() & mask);
      }
    }
    const ptx::Module before = ptx::parse(elementwise_kernel(one.body, one.width));
    const Fused result = run_pass(before, "mad_fusion");
    CHECK(result.report.fired() == 1);
    CHECK(run_elementwise(before, one.width, operands) ==
          run_elementwise(result.module, one.width, operands));
  }
}
