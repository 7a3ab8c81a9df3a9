// src/qa/lines/section_d.cpp - D: results of the GEMV kernels
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ptxgen/kernels.hpp"
#include "qa/edits.hpp"
#include "qa/fixture.hpp"
#include "qa/gemv_check.hpp"
#include "qa/lines/lines.hpp"
#include "qa/tally.hpp"
#include "support/random_values.hpp"

namespace ptxgen::qa {

namespace section_d {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Runs both kernels and hands their results to `check`.
template <class Check>
void with_both(Tally& tally, Fixture& fixture, const Problem& problem, const Check& check) {
  const GemvRun coalesced = fixture.gemv<GemvCoalesced>(problem);
  check_clean(tally, coalesced, "gemv_coalesced");
  check(std::string_view("gemv_coalesced"), coalesced.y, coalesced_roundings(problem));
  const GemvRun strided = fixture.gemv<GemvStrided>(problem);
  check_clean(tally, strided, "gemv_strided");
  check(std::string_view("gemv_strided"), strided.y, strided_roundings(problem));
}

Outcome identity(Fixture& fixture, const Line&) {
  Tally tally;
  for (const std::uint32_t size : {1u, 32u, 255u, 257u, 600u}) {
    Problem problem = random_problem(size, size, size);
    for (std::size_t i = 0; i < problem.a.size(); ++i) {
      problem.a[i] = i % (std::size_t{size} + 1) == 0 ? 1.0f : 0.0f;
    }
    with_both(tally, fixture, problem,
              [&](std::string_view name, const std::vector<float>& y, std::uint64_t) {
                const std::size_t different = different_bits(y, problem.x);
                tally.check(different == 0, "{} {} x {}: {} elements differ from x", name, size,
                            size, different);
              });
  }
  return tally.outcome();
}

Outcome zeros(Fixture& fixture, const Line&) {
  Tally tally;
  Problem problem = random_problem(300, 70, 2);
  std::fill(problem.a.begin(), problem.a.end(), 0.0f);
  const std::vector<float> zero(problem.n, 0.0f);
  with_both(tally, fixture, problem,
            [&](std::string_view name, const std::vector<float>& y, std::uint64_t) {
              tally.check(different_bits(y, zero) == 0, "{}: {} elements are not +0", name,
                          different_bits(y, zero));
            });
  return tally.outcome();
}

Outcome ones(Fixture& fixture, const Line&) {
  Tally tally;
  Problem problem = random_problem(1000, 300, 3);
  std::fill(problem.a.begin(), problem.a.end(), 1.0f);
  with_both(tally, fixture, problem,
            [&](std::string_view name, const std::vector<float>& y, std::uint64_t roundings) {
              const std::vector<float> first(problem.n, y.front());
              tally.check(different_bits(y, first) == 0, "{}: {} elements differ from y[0]", name,
                          different_bits(y, first));
              check_gemv(tally, problem, y, roundings, name, MeanError::Unchecked);
            });
  return tally.outcome();
}

Outcome whole_numbers(Fixture& fixture, const Line&) {
  Tally tally;
  Problem problem;
  problem.k = 4;
  problem.n = 8;
  problem.a = {1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6,  5, 4, 3,  2, 1,
               0, 1, 0, 1, 0, 1, 0, 1, 9, 0, -9, 0, 9, -9, 0, 9};
  problem.x = {1, 10, 100, 1000};
  const std::vector<float> expected = {9081, 172, -8937, 154, 9045, -8864, 27, 9118};
  with_both(tally, fixture, problem,
            [&](std::string_view name, const std::vector<float>& y, std::uint64_t) {
              tally.check(y == expected, "{}: {} elements are wrong", name,
                          different_bits(y, expected));
            });
  return tally.outcome();
}

Outcome small_square(Fixture& fixture, const Line&) {
  Tally tally;
  tally.figure("largest error / bound {:.3f}",
               check_both_kernels(tally, fixture, random_problem(64, 64, 5)));
  return tally.outcome();
}

Outcome large_square(Fixture& fixture, const Line&) {
  Tally tally;
  tally.figure("largest error / bound {:.3f}",
               check_both_kernels(tally, fixture, random_problem(4096, 4096, 6)));
  return tally.outcome();
}

Outcome cancellation(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr std::uint32_t kColumns = 130;
  Problem problem = random_problem(512, kColumns, 7, -100.0f, 100.0f);
  // Pairs of rows that nearly cancel.
  for (std::size_t i = 0; i + 1 < problem.k; i += 2) {
    problem.x[i + 1] = -problem.x[i];
    for (std::size_t j = 0; j < kColumns; ++j) {
      problem.a[(i + 1) * kColumns + j] = problem.a[i * kColumns + j] * (1 + 0x1p-10f);
    }
  }
  const GemvReference reference = gemv_reference(problem.a, problem.x, problem.k, problem.n);
  std::size_t certain = 0;
  with_both(tally, fixture, problem,
            [&](std::string_view name, const std::vector<float>& y, std::uint64_t roundings) {
              check_gemv(tally, problem, y, roundings, name, MeanError::Unchecked);
              for (std::size_t j = 0; j < y.size(); ++j) {
                const double exact = reference.y[j];
                if (std::abs(exact) <= gemv_error_bound(reference.magnitude[j], roundings))
                  continue;
                ++certain;
                tally.check(std::signbit(y[j]) == std::signbit(exact),
                            "{}: y[{}] = {} has another sign than {}", name, j, y[j], exact);
              }
            });
  tally.check(certain > 0, "no sign is certain");
  tally.figure("{} signs are certain, and right", certain);
  return tally.outcome();
}

Outcome large_values(Fixture& fixture, const Line&) {
  Tally tally;
  check_both_kernels(tally, fixture, random_problem(700, 90, 8, 1e6f, 1e7f));
  check_both_kernels(tally, fixture, random_problem(700, 90, 9, -1e7f, -1e6f));
  constexpr float kMax = std::numeric_limits<float>::max();
  Problem problem;
  problem.k = 2;
  problem.n = 3;
  problem.a = {kMax, kMax, -kMax, kMax, 0, -kMax};
  problem.x = {1, 1};
  const std::vector<float> expected = {kInf, kMax, -kInf};
  with_both(tally, fixture, problem,
            [&](std::string_view name, const std::vector<float>& y, std::uint64_t) {
              tally.check(y == expected, "{}: sums beyond FLT_MAX are {}, {}, {}", name, y[0], y[1],
                          y[2]);
            });
  return tally.outcome();
}

Outcome small_values(Fixture& fixture, const Line&) {
  Tally tally;
  check_both_kernels(tally, fixture, random_problem(700, 90, 10, 1e-6f, 1e-5f));
  constexpr float kMin = std::numeric_limits<float>::denorm_min();
  Problem problem;
  problem.k = 3;
  problem.n = 4;
  problem.a = {kMin,      0x1p-130f, -0x1p-140f, 0x1p-100f, kMin, 0x1p-131f,
               0x1p-141f, 0x1p-100f, 0,          0,         kMin, 0};
  problem.x = {1, 1, 1};
  const std::vector<float> exact = {2 * kMin, 0x1p-130f + 0x1p-131f, -0x1p-140f + 0x1p-141f + kMin,
                                    0x1p-99f};
  with_both(tally, fixture, problem,
            [&](std::string_view name, const std::vector<float>& y, std::uint64_t) {
              tally.check(different_bits(y, exact) == 0, "{}: {} subnormal sums are wrong", name,
                          different_bits(y, exact));
            });
  // The same kernel with .ftz: subnormal inputs and results are zeros of their sign.
  ptx::Module flushing = fixture.build(GemvCoalesced{problem.k, problem.n});
  set_modifier(flushing, ptx::Op::fma_f32, ptx::Field::FlushToZero,
               fixture.changed() ? ptx::Modifier::none : ptx::Modifier::ftz);
  const GemvRun flushed =
      fixture.gemv(flushing, GemvCoalesced{problem.k, problem.n}.geometry(), problem);
  const std::vector<float> expected = {0, 0, 0, 0x1p-99f};
  tally.check(different_bits(flushed.y, expected) == 0, "with .ftz {} sums are wrong",
              different_bits(flushed.y, expected));
  return tally.outcome();
}

Outcome hundred_matrices(Fixture& fixture, const Line&) {
  Tally tally;
  const std::vector<float> numbers = random_values(200, 77);
  const auto size = [](float number, float max) {
    return 1 + static_cast<std::uint32_t>((number * 0.5f + 0.5f) * (max - 1));
  };
  double worst = 0;
  std::size_t odd = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    const std::uint32_t k = size(numbers[2 * i], i % 4 == 0 ? 3000 : 300);
    const std::uint32_t n = size(numbers[2 * i + 1], i % 4 == 0 ? 20 : 300);
    odd += k % 256 != 0 && n % 4 != 0;
    worst =
        std::max(worst, check_both_kernels(tally, fixture, random_problem(k, n, 1000 + i, -3, 3)));
  }
  tally.check(odd > 25, "only {} matrices have k no multiple of 256 and n none of 4", odd);
  tally.figure(
      "100 matrices, {} with k no multiple of 256 and n none of 4, largest error / bound "
      "{:.3f}, seeds 1000 to 1099",
      odd, worst);
  // NaN and infinities reach exactly the columns that they are in.
  Problem special = random_problem(300, 270, 12);
  special.a[257 * 270 + 3] = std::numeric_limits<float>::quiet_NaN();
  special.a[257 * 270 + 256] = kInf;
  special.a[257 * 270 + 269] = -kInf;
  check_both_kernels(tally, fixture, special);
  return tally.outcome();
}

// Mutants -----------------------------------------------------------------------------------------

void next_row_in_next_column(ptx::Module& m) {
  // The steps of the unrolled loop and of the remaining rows.
  for (std::size_t i = 2; i < 7; ++i) {
    set_operand(m, ptx::Op::mad_wide, i, 1, ptx::Operand::integer(1));
  }
}
void starts_at_one(ptx::Module& m) {
  ptx::Function& function = m.functions.front();
  for (const ptx::Instruction& statement : function.body) {
    if (!statement.is(ptx::Op::mov)) continue;
    ptx::Operand& source = function.operands_of(statement)[1];
    if (source.kind != ptx::OperandKind::Float32 || source.value != 0) continue;
    source = ptx::Operand::f32(1.0f);
    return;
  }
}
void drops_the_sum(ptx::Module& m) {
  set_operand(m, ptx::Op::fma_f32, 3, 3, ptx::Operand::f32(0.0f));
  set_operand(m, ptx::Op::fma_f32, 0, 3, ptx::Operand::f32(0.0f));
}
void drops_the_remainder(ptx::Module& m) {
  const std::size_t last = count_statements(m.functions.front(), ptx::Op::fma_f32) - 1;
  remove_statement(m, ptx::Op::fma_f32, last);
}
void rounds_down(ptx::Module& m) {
  set_modifier(m, ptx::Op::fma_f32, ptx::Field::Rounding, ptx::Modifier::rm);
}
void saturates(ptx::Module& m) {
  set_modifier(m, ptx::Op::fma_f32, ptx::Field::Saturate, ptx::Modifier::sat);
}

constexpr Line kLines[] = {
    {"D1",
     Section::D,
     2,
     "the identity gives x",
     "bit for bit, five sizes",
     Means::Emulator,
     identity,
     {"the next row is read in the next column", next_row_in_next_column, nullptr},
     "ptxgen verify gemv_coalesced --cases"},
    {"D2",
     Section::D,
     2,
     "a matrix of zeros gives +0",
     "bit for bit, 300 x 70",
     Means::Emulator,
     zeros,
     {"the sum starts at 1", starts_at_one, nullptr},
     "ptxgen verify gemv_coalesced --cases"},
    {"D3",
     Section::D,
     2,
     "a matrix of ones gives equal columns",
     "bit for bit, and within the bound of the sum of x, 1000 x 300",
     Means::Emulator,
     ones,
     {"one of four terms starts the sum again", drops_the_sum, nullptr},
     "ptxgen verify gemv_coalesced --cases"},
    {"D4",
     Section::D,
     2,
     "small whole numbers are exact",
     "4 x 8 against sums by hand",
     Means::Emulator,
     whole_numbers,
     {"the first of four terms starts the sum again", drops_the_sum, nullptr},
     "ptxgen verify gemv_coalesced --cases"},
    {"D5",
     Section::D,
     2,
     "64 x 64 is within the bound",
     "gamma of the kernel's roundings",
     Means::Emulator,
     small_square,
     {"a term of the sum is left out",
      [](ptx::Module& m) { remove_statement(m, ptx::Op::fma_f32, 0); }, nullptr},
     "ptxgen verify gemv_coalesced -p k=64 -p n=64"},
    {"D6",
     Section::D,
     2,
     "4096 x 4096 is within the bound",
     "gamma of the kernel's roundings; NMSE",
     Means::Emulator,
     large_square,
     {"every product is rounded down", rounds_down, nullptr},
     "ptxgen verify gemv_coalesced -p k=4096 -p n=4096"},
    {"D7",
     Section::D,
     2,
     "mixed signs and cancellation",
     "bound; exact sign where it is certain",
     Means::Emulator,
     cancellation,
     {"results are saturated to [0, 1]", saturates, nullptr},
     "ptxgen verify gemv_coalesced -p k=512 -p n=130"},
    {"D8",
     Section::D,
     2,
     "values of 1e6 to 1e7; sums beyond FLT_MAX are infinite",
     "bound; exact infinities",
     Means::Emulator,
     large_values,
     {"results are saturated to [0, 1]", saturates, nullptr},
     {}},
    {"D9",
     Section::D,
     2,
     "values of 1e-6 to 1e-5; subnormal values with and without .ftz",
     "bound; exact bits in both modes",
     Means::Emulator,
     small_values,
     {"the kernel with .ftz does not flush"},
     {}},
    {"D10",
     Section::D,
     2,
     "100 random matrices, NaN and infinities",
     "bound; sizes that are no multiples of 256 and 4; NaN and Inf in exactly their columns",
     Means::Emulator,
     hundred_matrices,
     {"the remainder of four rows is left out", drops_the_remainder, nullptr},
     "ptxgen verify all --cases"},
};

}  // namespace
}  // namespace section_d

std::span<const Line> correctness_lines() { return section_d::kLines; }

}  // namespace ptxgen::qa
