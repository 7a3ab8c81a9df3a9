// tests/emulator/approximation_test.cpp - .approx rows within their documented bounds
#include "emulator/lane/approximations.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "float_reference.hpp"
#include "lane_runner.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

using emulator::ApproximationBound;
using emulator::ErrorMeasure;
using ptx::Op;
using ptx::Type;

const FloatFormat& format_of(Type type) {
  return type == Type::f16    ? kHalf
         : type == Type::bf16 ? kBrain
         : type == Type::f32  ? kSingle
                              : kDouble;
}

/// One unit in the last place at a value.
double ulp(const FloatFormat& f, double value) {
  const int exponent = value == 0 ? 1 - f.bias() : std::max(std::ilogb(value), 1 - f.bias());
  return std::ldexp(1.0, exponent - f.fraction_bits);
}

/// The bound is about the value; where the result overflows or is subnormal, the format limits it.
bool within(const ApproximationBound& bound, const FloatFormat& f, double exact, double found) {
  const double min_normal = std::ldexp(1.0, 1 - f.bias());
  const double largest = value_of(f, f.infinity() - 1);
  if (std::isnan(exact)) return std::isnan(found);
  if (std::isinf(found)) return std::fabs(exact) >= largest && (found > 0) == (exact > 0);
  const double error = std::fabs(found - exact);
  double allowed = bound.bound;
  if (bound.measure == ErrorMeasure::Ulp) allowed *= ulp(f, exact);
  if (bound.measure == ErrorMeasure::Relative) {
    allowed *= std::fabs(exact);
    if (std::fabs(exact) < min_normal) allowed = ulp(f, exact);
  }
  return error <= allowed;
}

struct Row {
  const char* text;
  Op op;
  Type type;
  double (*exact)(double);
};
double reciprocal(double x) { return 1 / x; }
double reciprocal_root(double x) { return 1 / std::sqrt(x); }
double sine(double x) { return std::sin(x); }
double cosine(double x) { return std::cos(x); }
double root(double x) { return std::sqrt(x); }
double logarithm(double x) { return std::log2(x); }
double power(double x) { return std::exp2(x); }
double tangent(double x) { return std::tanh(x); }

constexpr Row kRows[] = {
    {"rcp.approx.f32 %f1, %f2;", Op::rcp_f32_approx, Type::f32, &reciprocal},
    {"sqrt.approx.f32 %f1, %f2;", Op::sqrt_f32_approx, Type::f32, &root},
    {"rsqrt.approx.f32 %f1, %f2;", Op::rsqrt_f32, Type::f32, &reciprocal_root},
    {"sin.approx.f32 %f1, %f2;", Op::sin, Type::f32, &sine},
    {"cos.approx.f32 %f1, %f2;", Op::cos, Type::f32, &cosine},
    {"lg2.approx.f32 %f1, %f2;", Op::lg2, Type::f32, &logarithm},
    {"ex2.approx.f32 %f1, %f2;", Op::ex2_f32, Type::f32, &power},
    {"tanh.approx.f32 %f1, %f2;", Op::tanh_f32, Type::f32, &tangent},
    {"ex2.approx.f16 %h1, %h2;", Op::ex2_f16, Type::f16, &power},
    {"tanh.approx.f16 %h1, %h2;", Op::tanh_f16, Type::f16, &tangent},
    {"tanh.approx.bf16 %h1, %h2;", Op::tanh_f16, Type::bf16, &tangent},
    {"rsqrt.approx.f64 %fd1, %fd2;", Op::rsqrt_f64, Type::f64, &reciprocal_root},
};

}  // namespace

TEST_CASE("approximations stay within the documented bounds") {
  for (const Row& row : kRows) {
    const LaneRunner lane(row.text);
    const FloatFormat& f = format_of(row.type);
    int bounds = 0;
    int tried = 0;
    int failures = 0;
    for (const ApproximationBound& bound : emulator::kApproximationBounds) {
      if (bound.op != row.op || bound.type != row.type) continue;
      ++bounds;
      const auto check = [&](std::uint64_t bits) {
        const double a = value_of(f, bits);
        if (!std::isfinite(a) || std::fabs(a) < bound.min || std::fabs(a) > bound.max) return;
        ++tried;
        const double exact = row.exact(a);
        if (a == 0) return;  // special values have a case of their own
        const double found = value_of(f, lane({bits}));
        if (within(bound, f, exact, found) || ++failures > 3) return;
        INFO(row.text << " a " << a << " exact " << exact << " found " << found);
        CHECK(within(bound, f, exact, found));
      };
      if (f.width() == 16) {
        for (std::uint64_t bits = 0; bits <= 0xffff; ++bits) check(bits);
        continue;
      }
      // Evenly through all bits, which is evenly through the exponents.
      FloatDice dice(seed());
      const int steps = count(100'000, 4'000'000);
      const std::uint64_t stride = (f.sign() * 2 - 1) / static_cast<std::uint64_t>(steps);
      for (int i = 0; i < steps; ++i) {
        check(static_cast<std::uint64_t>(i) * stride + dice.below(stride));
      }
    }
    INFO(row.text);
    CHECK(bounds > 0);
    CHECK(tried > 1000);
    CHECK(failures == 0);
  }
}

TEST_CASE("divisions by approximation stay within 2 ulp") {
  const LaneRunner approx("div.approx.f32 %f1, %f2, %f3;");
  const LaneRunner full("div.full.f32 %f1, %f2, %f3;");
  const LaneRunner flushing("div.approx.ftz.f32 %f1, %f2, %f3;");
  const ApproximationBound& bound = emulator::kApproximationBounds[0];
  REQUIRE(bound.op == Op::div_f32_approx);
  FloatDice dice(seed());
  const int steps = count(200'000, 4'000'000);
  for (int i = 0; i < steps; ++i) {
    const std::uint64_t a = dice.any(kSingle);
    const std::uint64_t b = dice.any(kSingle);
    const double x = value_of(kSingle, a);
    const double y = value_of(kSingle, b);
    if (!std::isfinite(x) || !std::isfinite(y) || y == 0) continue;
    const auto check = [&](const LaneRunner& lane, double exact) {
      const double found = value_of(kSingle, lane({a, b}));
      if (within(bound, kSingle, exact, found)) return;
      INFO(lane.text() << " " << x << " / " << y << " found " << found);
      CHECK(within(bound, kSingle, exact, found));
    };
    check(full, x / y);
    check(approx, std::fabs(y) > 0x1p126 ? 0 : x / y);
    const bool tiny = std::fabs(x) < 0x1p-126 || std::fabs(y) < 0x1p-126;
    const double quotient = std::fabs(y) > 0x1p126 ? 0 : x / y;
    if (!tiny) check(flushing, std::fabs(quotient) < 0x1p-126 ? 0 : quotient);
  }
  const std::uint64_t large = 0x7e800001;  // above 2^126
  CHECK(approx({0x7f800000, large}) == 0x7fffffff);
  CHECK(approx({0xbf800000, large}) == 0x80000000);
  CHECK(full({0x7f800000, large}) == 0x7f800000);
  CHECK(approx({0, 0}) == 0x7fffffff);
  CHECK(approx({0x3f800000, 0x80000000}) == 0xff800000);
}

TEST_CASE("approximations of special values are the documented ones") {
  constexpr std::uint64_t kInf = 0x7f800000;
  constexpr std::uint64_t kNegInf = 0xff800000;
  constexpr std::uint64_t kNegZero = 0x80000000;
  constexpr std::uint64_t kNan = 0x7fffffff;
  constexpr std::uint64_t kTiny = 0x00000001;
  constexpr std::uint64_t kNegTiny = 0x80000001;
  constexpr std::uint64_t kOne = 0x3f800000;
  constexpr std::uint64_t kNegOne = 0xbf800000;
  // Results for -inf, -1 (or any), -subnormal (flushed), -0, +0, +subnormal (flushed), +inf, NaN.
  struct Special {
    const char* text;
    std::uint64_t results[7];
  };
  constexpr std::uint64_t kInputs[7] = {kNegInf, kNegTiny, kNegZero, 0, kTiny, kInf, 0x7f900001};
  const Special specials[] = {
      {"rcp.approx.ftz.f32", {kNegZero, kNegInf, kNegInf, kInf, kInf, 0, kNan}},
      {"sqrt.approx.ftz.f32", {kNan, kNegZero, kNegZero, 0, 0, kInf, kNan}},
      {"rsqrt.approx.ftz.f32", {kNan, kNegInf, kNegInf, kInf, kInf, 0, kNan}},
      {"sin.approx.ftz.f32", {kNan, kNegZero, kNegZero, 0, 0, kNan, kNan}},
      {"cos.approx.ftz.f32", {kNan, kOne, kOne, kOne, kOne, kNan, kNan}},
      {"lg2.approx.ftz.f32", {kNan, kNegInf, kNegInf, kNegInf, kNegInf, kInf, kNan}},
      {"ex2.approx.ftz.f32", {0, kOne, kOne, kOne, kOne, kInf, kNan}},
      {"tanh.approx.f32", {kNegOne, kNegTiny, kNegZero, 0, kTiny, kOne, kNan}},
  };
  for (const Special& special : specials) {
    const LaneRunner lane(std::string(special.text) + " %f1, %f2;");
    for (int i = 0; i < 7; ++i) {
      INFO(special.text << " of input " << i);
      CHECK(lane({kInputs[i]}) == special.results[i]);
    }
  }
  CHECK(LaneRunner("sqrt.approx.f32 %f1, %f2;")({kNegTiny}) == kNan);
  CHECK(LaneRunner("lg2.approx.f32 %f1, %f2;")({kTiny}) == 0xc3150000);  // -149
  CHECK(LaneRunner("ex2.approx.ftz.f32 %f1, %f2;")({0xc2fe0000}) == 0);  // 2^-127
  CHECK(LaneRunner("ex2.approx.f32 %f1, %f2;")({0xc2fe0000}) == 0x00400000);

  const LaneRunner ex2("ex2.approx.f16x2 %r1, %r2;");
  CHECK(ex2({0xfc007c00}) == 0x00007c00);
  CHECK(ex2({0x7e004000}) == 0x7fff4400);  // NaN, 2^2
  const LaneRunner ex2_bf16("ex2.approx.ftz.bf16x2 %r1, %r2;");
  CHECK(ex2_bf16({0xc2fe4000}) == 0x00004080);  // 2^-127 flushed, 2^2
  const LaneRunner ex2_scalar("ex2.approx.ftz.bf16 %h1, %h2;");
  for (std::uint64_t bits = 0; bits <= 0xffff; ++bits) {
    const double a = value_of(kBrain, bits);
    const double exact = std::exp2(a);
    const double found = value_of(kBrain, ex2_scalar({bits}));
    if (std::isnan(a) || exact > 0x1.fep127 || exact < 0x1p-126) continue;
    if (std::fabs(found - exact) > 0x1p-7 * exact) CHECK(found == exact);
  }
  const LaneRunner tanh2("tanh.approx.bf16x2 %r1, %r2;");
  CHECK(tanh2({0xff807f80}) == 0xbf803f80);
}

TEST_CASE("f64 approximations see and give the upper half alone") {
  const LaneRunner rcp("rcp.approx.ftz.f64 %fd1, %fd2;");
  const LaneRunner rsqrt("rsqrt.approx.ftz.f64 %fd1, %fd2;");
  FloatDice dice(seed());
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t a = dice.any(kDouble);
    const double value = value_of(kDouble, a & 0xffffffff00000000);
    CHECK((rcp({a}) & 0xffffffff) == 0);
    CHECK((rsqrt({a}) & 0xffffffff) == 0);
    if (!std::isnormal(value)) continue;
    const double exact = 1 / value;
    const double found = value_of(kDouble, rcp({a}));
    if (std::isnormal(exact) && std::fabs(found - exact) > 0x1p-20 * std::fabs(exact)) {
      CHECK(found == exact);
    }
    if (value < 0) continue;
    const double root = value_of(kDouble, rsqrt({a}));
    if (std::fabs(root * std::sqrt(value) - 1) > 0x1p-20) CHECK(root == 1 / std::sqrt(value));
  }
  CHECK(rcp({0x8000000000000001}) == 0xfff0000000000000);
  CHECK(rcp({0x7ff0000000000000}) == 0);
  CHECK(rcp({0x7ff0000000000001}) == 0xfff8000000000000);
  CHECK(rsqrt({0x8000000000000001}) == 0xfff0000000000000);
  CHECK(rsqrt({0xbff0000000000000}) == 0xfff8000000000000);
}

}  // namespace ptxgen::test
