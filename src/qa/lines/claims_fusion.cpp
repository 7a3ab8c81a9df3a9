// src/qa/lines/claims_fusion.cpp - claims 16 to 30: fusion of multiplications and additions
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "qa/edits.hpp"
#include "qa/fixture.hpp"
#include "qa/lines/claim_row.hpp"
#include "qa/lines/snippet_kernel.hpp"
#include "qa/tally.hpp"
#include "support/random_values.hpp"

namespace ptxgen::qa {

namespace claims_fusion {
namespace {

constexpr std::string_view kSum = "mul.rn.f32 %f4, %f1, %f2;\nadd.rn.f32 %f9, %f4, %f3;\n";

std::size_t instructions(const ptx::Module& module) {
  return static_cast<std::size_t>(std::ranges::count(
      module.functions.front().body, ptx::StatementKind::Instruction, &ptx::Instruction::kind));
}

optimize::PipelineReport fuse(ptx::Module& module, const Fixture& fixture) {
  optimize::PassOptions options;
  options.passes = {fixture.changed() ? "branch_simplify" : "fma_fusion"};
  return optimize::run_passes(module, options);
}

optimize::PipelineReport fuse(ptx::Module& module) {
  optimize::PassOptions options;
  options.passes = {"fma_fusion"};
  return optimize::run_passes(module, options);
}

std::size_t fused(const ptx::Module& module) {
  return count_statements(module.functions.front(), ptx::Op::fma_f32);
}

// The loads, products, sums and fused operations of a kernel: what a thread computes with.
std::size_t operations(const ptx::Module& module, bool with_load) {
  const ptx::Function& function = module.functions.front();
  std::size_t count = fused(module);
  for (const ptx::Op op : {ptx::Op::mul_f32, ptx::Op::add_f32}) {
    count += count_statements(function, op);
  }
  return count + (with_load ? 1 : 0);
}

Outcome fewer_instructions(Fixture& fixture, const Line&) {
  Tally tally;
  ptx::Module module = ptx::parse(snippet_kernel(kSum));
  const std::size_t before = instructions(module);
  const std::size_t alone = operations(module, false);
  const std::size_t loaded = operations(module, true);
  fuse(module, fixture);
  const std::size_t removed = before - instructions(module);
  tally.check(removed == 1, "{} instructions are removed of a product and a sum", removed);
  const auto share = [&](std::size_t of) {
    return 100.0 * static_cast<double>(removed) / static_cast<double>(of);
  };
  tally.check(operations(module, true) * 3 == loaded * 2, "{} operations with a load become {}",
              loaded, operations(module, true));
  tally.figure(
      "{} operations with a load become {}, {:.0f} % fewer; {} without one become {}, "
      "{:.0f} %",
      loaded, operations(module, true), share(loaded), alone, operations(module, false),
      share(alone));
  return tally.outcome(Verdict::Supported);
}

Outcome more_accurate(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr std::size_t kCount = 1024;
  std::array<std::vector<float>, 3> inputs;
  for (std::size_t i = 0; i < 3; ++i) inputs[i] = random_values(kCount, 160 + i);
  ptx::Module module = ptx::parse(snippet_kernel(kSum));
  const std::vector<float> apart = run_snippet(tally, fixture, module, inputs);
  fuse(module, fixture);
  const std::vector<float> once = run_snippet(tally, fixture, module, inputs);
  double apart_square = 0;
  double once_square = 0;
  std::size_t worse = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    // Exact in fp64 up to the sum, whose rounding is 2^-29 of those compared.
    const double exact = static_cast<double>(inputs[0][i]) * inputs[1][i] + inputs[2][i];
    apart_square += (apart[i] - exact) * (apart[i] - exact);
    once_square += (once[i] - exact) * (once[i] - exact);
    worse += std::abs(once[i] - exact) > std::abs(apart[i] - exact);
  }
  tally.check(once_square < apart_square, "the squared error is {:.3g} fused, {:.3g} apart",
              once_square, apart_square);
  tally.figure("RMS error {:.3g} fused, {:.3g} apart; {} of {} single results are worse fused",
               std::sqrt(once_square / kCount), std::sqrt(apart_square / kCount), worse, kCount);
  return tally.outcome(Verdict::Supported);
}

Outcome single_use(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr std::string_view kTwice =
      "mul.rn.f32 %f4, %f1, %f2;\nadd.rn.f32 %f5, %f4, %f3;\nsub.rn.f32 %f6, %f4, %f5;\n"
      "max.f32 %f9, %f6, %f4;\n";
  ptx::Module module = ptx::parse(snippet_kernel(fixture.changed() ? kSum : kTwice));
  const ptx::Module before = module;
  fuse(module);
  tally.check(ptx::equal(before, module), "a product that is read elsewhere was fused: {}",
              ptx::difference(before, module));
  return tally.outcome(Verdict::Supported);
}

Outcome rounding_modes(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr std::string_view kModes[] = {"rn", "rz", "rm", "rp"};
  for (const std::string_view product : kModes) {
    for (const std::string_view sum : kModes) {
      ptx::Module module = ptx::parse(
          snippet_kernel(format_text("mul.{}.f32 %f4, %f1, %f2;\nadd.{}.f32 %f9, %f4, %f3;\n",
                                     product, fixture.changed() ? "rn" : sum)));
      fuse(module);
      const bool is_fused = fused(module) == 1;
      tally.check(is_fused == (product == sum), "mul.{} and add.{} are {}", product, sum,
                  is_fused ? "fused" : "not fused");
    }
  }
  tally.figure("16 pairs: fused exactly where both round alike");
  return tally.outcome(Verdict::Supported);
}

Outcome has_fma(Fixture& fixture, const Line&) {
  Tally tally;
  ptx::Module module = ptx::parse(snippet_kernel(kSum));
  fuse(module, fixture);
  const ptx::Function& function = module.functions.front();
  const std::size_t at = find_statement(function, ptx::Op::fma_f32, 0);
  if (tally.check(at != function.body.size(), "there is no fma.f32")) {
    tally.check(function.body[at].get(ptx::Field::Rounding) == ptx::Modifier::rn,
                "the fma does not round to nearest");
    const auto operands = function.operands_of(function.body[at]);
    tally.check(ptx::name_of(module, function, operands[0].as_register()) == "%f9" &&
                    ptx::name_of(module, function, operands[3].as_register()) == "%f3",
                "the fma is not that of the sum");
  }
  return tally.outcome(Verdict::Supported);
}

Outcome idempotent(Fixture& fixture, const Line&) {
  Tally tally;
  const ptx::Module start = ptx::parse(snippet_kernel(kSum));
  ptx::Module once = start;
  tally.check(fuse(once).changed(), "the first run changes nothing");
  ptx::Module twice = fixture.changed() ? start : once;
  const optimize::PipelineReport report = fuse(twice);
  tally.check(!report.changed(), "the second run changes the code");
  tally.check(ptx::equal(once, twice), "the second run gives other code: {}",
              ptx::difference(once, twice));
  return tally.outcome(Verdict::Supported);
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// A fused expression of each triple against the host's std::fma.
template <class Exact>
void check_triples(Tally& tally, Fixture& fixture, std::string_view statements,
                   std::span<const float> values, std::size_t fusions, const Exact& exact) {
  ptx::Module module = ptx::parse(snippet_kernel(statements));
  fuse(module);
  tally.check(fused(module) == fusions, "{} operations are fused, not {}", fused(module), fusions);
  const std::array<std::vector<float>, 3> inputs = triples(values);
  const std::vector<float> results = run_snippet(tally, fixture, fixture.edited(module), inputs);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const float expected = exact(inputs[0][i], inputs[1][i], inputs[2][i]);
    tally.check(same_float(results[i], expected), "({:g}, {:g}, {:g}) gives {:g}, expected {:g}",
                inputs[0][i], inputs[1][i], inputs[2][i], results[i], expected);
  }
}

Outcome difference(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr float kValues[] = {0.0f, -0.0f, 1.0f, -1.5f, 0.1f, kNan, kInf, 0x1p-126f};
  check_triples(tally, fixture, "mul.rn.f32 %f4, %f1, %f2;\nsub.rn.f32 %f9, %f4, %f3;\n", kValues,
                1, [](float a, float b, float c) { return std::fma(a, b, -c); });
  return tally.outcome(Verdict::Supported);
}

Outcome nans(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr float kValues[] = {kNan, 0.0f, -0.0f, 1.0f, -2.0f, kInf, -kInf, 0x1p-149f};
  check_triples(tally, fixture, kSum, kValues, 1,
                [](float a, float b, float c) { return std::fma(a, b, c); });
  return tally.outcome(Verdict::Supported);
}

Outcome infinities(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kValues[] = {kInf, -kInf, 0.0f, -0.0f, 1.0f, kMax, -kMax, 2.0f};
  check_triples(tally, fixture, kSum, kValues, 1,
                [](float a, float b, float c) { return std::fma(a, b, c); });
  return tally.outcome(Verdict::Supported);
}

Outcome nested(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr float kValues[] = {0.1f, -0.3f, 1.7f, 3.0f, -0.0f, 1e-3f, 1e6f, 7.25f};
  check_triples(tally, fixture,
                "mul.rn.f32 %f4, %f1, %f2;\nadd.rn.f32 %f5, %f4, %f3;\n"
                "mul.rn.f32 %f6, %f5, %f1;\nadd.rn.f32 %f9, %f6, %f2;\n",
                kValues, 2,
                [](float a, float b, float c) { return std::fma(std::fma(a, b, c), a, b); });
  return tally.outcome(Verdict::Supported);
}

Outcome linear(Fixture& fixture, const Line&) {
  Tally tally;
  const auto visits = [](std::size_t pairs) {
    std::string body;
    for (std::size_t i = 0; i < pairs; ++i) body += kSum;
    ptx::Module module = ptx::parse(snippet_kernel(body));
    return fuse(module).passes.front().visits;
  };
  const std::uint64_t small = visits(500);
  const std::uint64_t middle = visits(5000);
  const std::uint64_t large = visits(fixture.changed() ? 200000 : 50000);
  for (const auto& [from, to] : {std::pair{small, middle}, std::pair{middle, large}}) {
    tally.check(from != 0 && to <= 11 * from, "{} visits become {} for ten times the code", from,
                to);
  }
  tally.figure("{}, {} and {} visits for 1,000, 10,000 and 100,000 instructions", small, middle,
               large);
  return tally.outcome(Verdict::Supported);
}

constexpr Mutant kNotFused{"the pass does not run"};
constexpr Mutant kOtherAddend{
    "the addend is a factor",
    [](ptx::Module& m) {
      if (const ptx::Operand* factor = operand_at(m, ptx::Op::fma_f32, 0, 1)) {
        const ptx::Operand copy = *factor;
        set_operand(m, ptx::Op::fma_f32, 0, 3, copy);
      }
    },
    nullptr};

constexpr Line kLines[] = {
    decided_claim("16", "fusion removes a third of the instructions",
                  "statements of a fixed kernel before and after", Means::Unit, fewer_instructions,
                  kNotFused, "ptxgen opt --passes fma_fusion"),
    decided_claim("17", "fused results are more accurate", "RMS error of 1024 random sums in fp64",
                  Means::Emulator, more_accurate, kNotFused),
    decided_claim("18", "products with other uses are left", "the code is unchanged", Means::Unit,
                  single_use, {"the product has one use"}),
    decided_claim("19", "rounding modes are respected", "all 16 pairs of modes", Means::Unit,
                  rounding_modes, {"every sum rounds to nearest"}),
    open_claim("20", "AVX2 gains 10 % by fused operations",
               "not decided: a time of the host, printed by bench_host"),
    inapplicable("21", "NEON gains 10 % by fused operations", "no ARM host is part of the tests"),
    decided_claim("22", "the PTX has fma.rn.f32", "the statement that writes the sum", Means::Unit,
                  has_fma, kNotFused, "ptxgen opt --passes fma_fusion"),
    on_gpu("23", "fusion pays with loops unrolled four times", "times"),
    on_gpu("24", "fma and mul have the same rate", "times of both"),
    decided_claim("25", "the pass is idempotent", "a second run changes no byte", Means::Unit,
                  idempotent, {"the second run begins with the original code"}),
    decided_claim("26", "a*b - c becomes a fused operation",
                  "512 triples with signed zeros and NaN "
                  "against fma(a, b, -c)",
                  Means::Emulator, difference, kOtherAddend),
    decided_claim("27", "NaN as IEEE 754 demands", "512 triples against the host's fma",
                  Means::Emulator, nans, kOtherAddend),
    decided_claim("28", "infinities as IEEE 754 demands", "512 triples against the host's fma",
                  Means::Emulator, infinities, kOtherAddend),
    decided_claim("29", "(a*b + c)*d + e becomes two fused operations",
                  "512 triples against the host's fma", Means::Emulator, nested, kOtherAddend),
    decided_claim("30", "the pass is linear", "visited statements of 1,000 to 100,000", Means::Unit,
                  linear, {"the largest code is four times as large"}),
};

}  // namespace
}  // namespace claims_fusion

std::span<const Line> fusion_claims() { return claims_fusion::kLines; }

}  // namespace ptxgen::qa
