// src/qa/lines/claims_numerics.cpp - claims 91 to 98: numerics
#include <cmath>
#include <functional>
#include <limits>

#include "ptxgen/builder.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "qa/edits.hpp"
#include "qa/fixture.hpp"
#include "qa/lines/claim_row.hpp"
#include "qa/lines/snippet_kernel.hpp"
#include "qa/tally.hpp"

namespace ptxgen::qa {

namespace claims_numerics {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// One expression of each triple against the host's.
void check_expression(Tally& tally, Fixture& fixture, std::string_view statements,
                      std::span<const float> values,
                      const std::function<float(float, float, float)>& exact) {
  const ptx::Module module = fixture.edited(ptx::parse(snippet_kernel(statements)));
  const std::array<std::vector<float>, 3> inputs = triples(values);
  const std::vector<float> results = run_snippet(tally, fixture, module, inputs);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const float expected = exact(inputs[0][i], inputs[1][i], inputs[2][i]);
    tally.check(same_float(results[i], expected), "{} of ({:g}, {:g}, {:g}) is {:g}, expected {:g}",
                statements.substr(0, statements.find(' ')), inputs[0][i], inputs[1][i],
                inputs[2][i], results[i], expected);
  }
}

// A million times a[0], plain in thread 0, compensated in thread 1.
constexpr std::string_view kSums = R"(
  mov.f32 %f4, 0f00000000;
  mov.f32 %f5, 0f00000000;
  mov.u32 %r2, 0;
  setp.eq.u32 %p1, %r1, 0;
LOOP:
  sub.rn.f32 %f6, %f1, %f5;
  add.rn.f32 %f7, %f4, %f6;
  sub.rn.f32 %f8, %f7, %f4;
  sub.rn.f32 %f5, %f8, %f6;
  @%p1 mov.f32 %f5, 0f00000000;
  mov.f32 %f4, %f7;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, 1000000;
  @%p2 bra LOOP;
  mov.f32 %f9, %f4;
)";

Outcome compensated(Fixture& fixture, const Line&) {
  Tally tally;
  ptx::Module module = fixture.edited(ptx::parse(snippet_kernel(kSums)));
  optimize::run_passes(module);  // with contraction allowed
  const std::vector<float> tenths(2, 0.1f);
  const std::vector<float> sums = run_snippet(tally, fixture, module, {tenths, tenths, tenths});
  const double exact = 1e6 * static_cast<double>(0.1f);
  const double plain = std::abs(sums[0] - exact) / exact;
  const double kahan = std::abs(sums[1] - exact) / exact;
  tally.check(kahan <= 0x1p-23, "the compensated sum has a relative error of {:.3g}", kahan);
  tally.check(plain > 100 * kahan, "the plain sum has a relative error of {:.3g}", plain);
  tally.figure(
      "1,000,000 times 0.1, after all passes: relative error {:.3g} compensated, {:.3g} "
      "plain",
      kahan, plain);
  return tally.outcome(Verdict::Supported);
}

Outcome one_rounding(Fixture& fixture, const Line&) {
  Tally tally;
  // (1 + u)^2 - (1 + 2u) is u^2, which a product rounded before the sum loses.
  std::array<std::vector<float>, 3> inputs;
  for (int i = 12; i <= 20; ++i) {
    const float u = std::ldexp(1.0f, -i);
    inputs[0].push_back(1 + u);
    inputs[1].push_back(1 + u);
    inputs[2].push_back(-(1 + 2 * u));
  }
  ptx::Module module =
      ptx::parse(snippet_kernel("mul.rn.f32 %f4, %f1, %f2;\nadd.rn.f32 %f9, %f4, %f3;\n"));
  const std::vector<float> twice = run_snippet(tally, fixture, module, inputs);
  optimize::PassOptions options;
  options.passes = {fixture.changed() ? "dead_code" : "fma_fusion"};
  optimize::run_passes(module, options);
  const std::vector<float> once = run_snippet(tally, fixture, module, inputs);
  for (std::size_t i = 0; i < once.size(); ++i) {
    const float exact = std::ldexp(1.0f, -2 * (12 + static_cast<int>(i)));
    tally.check(once[i] == exact, "fused {:g}, expected {:g}", once[i], exact);
    tally.check(twice[i] == 0, "with two roundings {:g}, expected 0", twice[i]);
  }
  tally.figure("{} ties: exact with one rounding, 0 with two", once.size());
  return tally.outcome(Verdict::Supported);
}

float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

constexpr float kSmall[] = {0x1p-149f, -0x1p-149f,   0x1p-130f, -0x1p-127f,
                            0x1p-126f, -0x1.8p-126f, 0.0f,      -0.0f};

Outcome subnormal(Fixture& fixture, const Line&) {
  Tally tally;
  check_expression(tally, fixture, "add.rn.f32 %f9, %f1, %f2;\n", kSmall,
                   [](float a, float b, float) { return a + b; });
  check_expression(tally, fixture, "add.rn.ftz.f32 %f9, %f1, %f2;\n", kSmall,
                   [](float a, float b, float) { return flushed(flushed(a) + flushed(b)); });
  check_expression(tally, fixture, "fma.rn.f32 %f9, %f1, %f2, %f3;\n", kSmall,
                   [](float a, float b, float c) { return std::fma(a, b, c); });
  return tally.outcome(Verdict::Supported);
}

Outcome nan_propagates(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr float kValues[] = {kNan, -0.0f, 1.0f, -2.5f, kInf};
  check_expression(tally, fixture, "add.rn.f32 %f9, %f1, %f2;\n", kValues,
                   [](float a, float b, float) { return a + b; });
  check_expression(tally, fixture, "mul.rn.f32 %f9, %f1, %f2;\n", kValues,
                   [](float a, float b, float) { return a * b; });
  check_expression(tally, fixture, "fma.rn.f32 %f9, %f1, %f2, %f3;\n", kValues,
                   [](float a, float b, float c) { return std::fma(a, b, c); });
  check_expression(tally, fixture, "max.f32 %f9, %f1, %f2;\n", kValues,
                   [](float a, float b, float) { return std::fmax(a, b); });
  check_expression(tally, fixture, "max.NaN.f32 %f9, %f1, %f2;\n", kValues,
                   [](float a, float b, float) {
                     return std::isnan(a) || std::isnan(b) ? kNan : std::fmax(a, b);
                   });
  return tally.outcome(Verdict::Supported);
}

Outcome infinite(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kValues[] = {kInf, -kInf, kMax, -kMax, 0.0f, -1.0f};
  check_expression(tally, fixture, "add.rn.f32 %f9, %f1, %f2;\n", kValues,
                   [](float a, float b, float) { return a + b; });
  check_expression(tally, fixture, "sub.rn.f32 %f9, %f1, %f2;\n", kValues,
                   [](float a, float b, float) { return a - b; });
  check_expression(tally, fixture, "mul.rn.f32 %f9, %f1, %f2;\n", kValues,
                   [](float a, float b, float) { return a * b; });
  return tally.outcome(Verdict::Supported);
}

Outcome negative_zero(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr float kValues[] = {-0.0f, 0.0f, 1.5f, -1.5f, 0x1p-149f};
  check_expression(tally, fixture, "add.rn.f32 %f9, %f1, 0f80000000;\n", kValues,
                   [](float a, float, float) { return a + -0.0f; });
  check_expression(tally, fixture, "neg.f32 %f9, %f1;\n", kValues,
                   [](float a, float, float) { return -a; });
  check_expression(tally, fixture, "fma.rn.f32 %f9, %f1, %f2, 0f80000000;\n", kValues,
                   [](float a, float b, float) { return std::fma(a, b, -0.0f); });
  return tally.outcome(Verdict::Supported);
}

Outcome explicit_rounding(Fixture& fixture, const Line&) {
  Tally tally;
  const ptx::Module module = fixture.edited(
      build_kernel("k", fixture.target().name, params(param<Ptr<f32>>("y"), param<Ptr<f32>>("x")),
                   [](KernelBuilder& k, Ptr<f32> y, Ptr<f32> x) {
                     const Value<u32> i = k.tid_x();
                     const Value<f32> value = k.ld_global(x + i);
                     const Value<f32> product = value * value;
                     const Value<f32> sum = product + value;
                     k.st_global(y + i, sum - product);
                   })
          .module());
  std::size_t operations = 0;
  for (const ptx::Instruction& statement : module.functions.front().body) {
    if (!statement.is(ptx::Op::add_f32) && !statement.is(ptx::Op::mul_f32) &&
        !statement.is(ptx::Op::sub_f32)) {
      continue;
    }
    ++operations;
    tally.check(statement.get(ptx::Field::Rounding) == ptx::Modifier::rn,
                "an operation has no .rn");
  }
  tally.check(operations == 3, "{} operations, expected 3", operations);
  return tally.outcome(Verdict::Supported);
}

constexpr Line kLines[] = {
    decided_claim("91", "compensated sums beat plain ones",
                  "a million terms, emulated after all passes", Means::Emulator, compensated,
                  {"the compensation is left out",
                   [](ptx::Module& m) { remove_statement(m, ptx::Op::sub_f32, 2); }, nullptr}),
    decided_claim("92", "one rounding is better than two", "constructed ties", Means::Emulator,
                  one_rounding, {"no pair is fused"}),
    decided_claim("93", "subnormal numbers", "with and without .ftz, against the host, exact",
                  Means::Emulator, subnormal,
                  {"no addition flushes",
                   [](ptx::Module& m) {
                     set_modifier(m, ptx::Op::add_f32, ptx::Field::FlushToZero,
                                  ptx::Modifier::none);
                   },
                   nullptr}),
    decided_claim(
        "94", "NaN propagates; min and max drop it",
        "add, mul, fma, max and max.NaN against the host", Means::Emulator, nan_propagates,
        {"max propagates NaN",
         [](ptx::Module& m) {
           set_modifier(m, ptx::Op::max_f32, ptx::Field::PropagateNan, ptx::Modifier::NaN);
         },
         nullptr}),
    decided_claim("95", "infinities", "add, sub and mul against the host", Means::Emulator,
                  infinite,
                  {"products are saturated",
                   [](ptx::Module& m) {
                     set_modifier(m, ptx::Op::mul_f32, ptx::Field::Saturate, ptx::Modifier::sat);
                   },
                   nullptr}),
    decided_claim(
        "96", "-0.0 is kept", "sums, negations and fused operations with -0.0", Means::Emulator,
        negative_zero,
        {"+0.0 is added",
         [](ptx::Module& m) { set_operand(m, ptx::Op::add_f32, 0, 2, ptx::Operand::f32(0.0f)); },
         nullptr}),
    decided_claim("98", "sums round to nearest even by default",
                  "every operation that the builder emits has .rn", Means::Unit, explicit_rounding,
                  {"the rounding is left out",
                   [](ptx::Module& m) {
                     set_modifier(m, ptx::Op::mul_f32, ptx::Field::Rounding, ptx::Modifier::none);
                   },
                   nullptr}),
};

}  // namespace
}  // namespace claims_numerics

std::span<const Line> numeric_claims() { return claims_numerics::kLines; }

}  // namespace ptxgen::qa
