// tests/optimize/loop_split_oracle_test.cpp - split loops against the originals, by iteration
#include <catch2/catch.hpp>
#include <random>

#include "loop_split_kernels.hpp"
#include "ptxgen/ptx.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

constexpr int kMaxIterations = 80;

optimize::PipelineReport split(ptx::Module& module) {
  optimize::PassOptions options;
  options.passes = {"loop_split"};
  options.explain = true;
  return optimize::run_passes(module, options);
}

// Splits the loop of the shape, after a guard if its bound is not clamped, and compares what all
// cases leave.
void check(const SplitShape& shape, const std::vector<SplitCase>& cases) {
  const std::string text = text_of(shape);
  const ptx::Module before = ptx::parse(text);
  ptx::Module after = before;
  const optimize::PipelineReport report = split(after);
  INFO(text);
  INFO(optimize::to_text(report, after));
  REQUIRE(report.passes[0].fired() == (shape.clamped ? 1 : 2));
  ptx::Module again = ptx::parse(ptx::print(after));
  REQUIRE_FALSE(split(again).changed());
  const std::string optimized = ptx::print(after);
  INFO(optimized);
  const auto expected = run_cases(before, cases), got = run_cases(after, cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (expected[2 * i] == got[2 * i] && expected[2 * i + 1] == got[2 * i + 1]) continue;
    CAPTURE(cases[i].lb, cases[i].ub, cases[i].s, cases[i].step);
    REQUIRE(expected[2 * i] == got[2 * i]);
    REQUIRE(expected[2 * i + 1] == got[2 * i + 1]);
  }
}

// All shapes that are to be split.
template <class Fn>
void for_each_shape(Fn&& fn) {
  for (const SplitForm form : kSplitForms) {
    for (const bool down : {false, true}) {
      if (down && form == SplitForm::Limit) continue;
      for (const bool is_signed : {false, true}) {
        for (int relation = 0; relation < 4; ++relation) {
          for (const bool swapped : {false, true}) {
            SplitShape shape;
            shape.form = form;
            shape.down = down;
            shape.is_signed = is_signed;
            shape.relation = relation;
            shape.swapped = swapped;
            fn(shape);
          }
        }
      }
    }
  }
}

// Numbers of a type with so few bits, at its ends and around 0.
std::uint64_t small(const SplitShape& s, std::uint64_t window, std::uint64_t n,
                    std::uint64_t size) {
  const std::uint64_t sign = std::uint64_t{1} << (s.bits - 1);
  const std::uint64_t min = s.is_signed ? sign : 0;
  const std::uint64_t middle = s.is_signed ? 0 - size / 2 : sign - size / 2;
  const std::uint64_t bases[] = {min, middle, min - size};
  return (bases[window] + n) & mask(s);
}

}  // namespace

TEST_CASE("every loop of a small type at both ends of its range and in the middle") {
  // 4 bits, all of lb, ub, s and step; an everyday run takes some of them, a full one 6 bits too.
  std::mt19937_64 dice(seed());
  int n = 0;
  for_each_shape([&](SplitShape shape) {
    for (const std::uint64_t size : {16u, 64u}) {
      if (size == 64 && !full()) continue;
      for (std::uint64_t window = 0; window < 3; ++window) {
        for (const std::uint64_t step : {1u, 2u, 3u, 5u, 6u, 15u}) {
          if (shape.form == SplitForm::NotEqual && step != 1) continue;
          if (!full() && dice() % 6 != 0) continue;
          shape.step = step;
          shape.bits = n % 4 == 3 ? 64 : 32;
          shape.predicated = n % 2 == 1;
          ++n;
          std::vector<SplitCase> cases;
          for (std::uint64_t i = 0; i < size * size * size; ++i) {
            if (!full() ? dice() % 40 != 0 : size == 64 && dice() % 64 != 0) continue;
            const SplitCase c{small(shape, window, i % size, size),
                              small(shape, window, i / size % size, size),
                              small(shape, window, i / size / size, size), step};
            if (iterations_of(shape, c, kMaxIterations) <= kMaxIterations) cases.push_back(c);
          }
          check(shape, cases);
        }
      }
    }
  });
  CHECK(n > 200);
}

TEST_CASE("a step other than 1 and bounds near which the variable wraps, and others") {
  std::mt19937_64 dice(seed() + 3);
  int n = 0;
  for_each_shape([&](SplitShape shape) {
    if (shape.form == SplitForm::NotEqual || shape.form == SplitForm::Limit) return;
    shape.clamped = false;
    for (const std::uint64_t step : {2u, 3u, 7u, 1u}) {
      if (step == 1 && shape.form != SplitForm::AtMost) continue;
      if (!full() && dice() % 3 != 0) continue;
      shape.step = step;
      shape.bits = ++n % 3 == 0 ? 64 : 32;
      shape.predicated = n % 2 == 1;
      std::vector<SplitCase> cases;
      for (int i = 0; i < count(2000, 40000); ++i) {
        const auto number = [&] {
          const std::uint64_t index = dice() % 24;
          return small(shape, dice() % 3, index, 24);
        };
        const SplitCase c{number(), number(), number(), step};
        if (iterations_of(shape, c, kMaxIterations) <= kMaxIterations) cases.push_back(c);
      }
      check(shape, cases);
    }
  });
  CHECK(n > 40);
}

TEST_CASE("bounds anywhere: the compared value far away from the loop, at the ends of the type") {
  std::mt19937_64 dice(seed() + 1);
  for_each_shape([&](SplitShape shape) {
    const auto roll = [&](std::uint64_t n) { return dice() % n; };
    constexpr std::uint64_t kSteps[] = {1, 1, 2, 3, 7, 256, 0x1000000};
    shape.step = shape.form == SplitForm::NotEqual ? 1 : kSteps[roll(std::size(kSteps))];
    shape.bits = roll(2) == 0 ? 64 : 32;
    shape.predicated = roll(2) == 0;
    if (shape.form != SplitForm::NotEqual && shape.form != SplitForm::Limit && roll(3) == 0) {
      shape.offset = static_cast<std::int64_t>(roll(9)) - 4;
    }
    const std::uint64_t sign = std::uint64_t{1} << (shape.bits - 1);
    std::vector<SplitCase> cases;
    for (int i = 0; i < count(120, 4000); ++i) {
      const std::uint64_t around[] = {0, sign, mask(shape), sign - 1};
      const auto number = [&] { return (around[roll(4)] + roll(12) - 6) & mask(shape); };
      SplitCase c{number(), number(), number(), shape.step};
      if (roll(2) == 0) {
        const std::uint64_t reach = shape.step * roll(40) + roll(3);
        c.ub = (shape.down ? c.lb - reach : c.lb + reach) & mask(shape);
      }
      if (roll(2) == 0)
        c.s = (c.lb + (shape.down ? 0 - roll(30) : roll(30)) * shape.step + roll(3) - 1) &
              mask(shape);
      if (iterations_of(shape, c, kMaxIterations) <= kMaxIterations) cases.push_back(c);
    }
    check(shape, cases);
  });
}

TEST_CASE("a step that is known at run time only, in the builder's form") {
  std::mt19937_64 dice(seed() + 2);
  for_each_shape([&](SplitShape shape) {
    if (shape.form != SplitForm::Limit) return;
    shape.constant_step = false;
    shape.bits = dice() % 2 == 0 ? 64 : 32;
    const std::uint64_t sign = std::uint64_t{1} << (shape.bits - 1);
    std::vector<SplitCase> cases;
    for (int i = 0; i < count(400, 20000); ++i) {
      const auto roll = [&](std::uint64_t n) { return dice() % n; };
      const std::uint64_t around[] = {0, sign, mask(shape), sign - 1};
      const auto number = [&] { return (around[roll(4)] + roll(12) - 6) & mask(shape); };
      SplitCase c{number(), number(), number(), 0};
      const std::uint64_t steps[] = {1,    2,        3,           1 + roll(200),
                                     sign, sign - 1, mask(shape), mask(shape) / 3};
      c.step = steps[roll(8)];
      if (roll(2) == 0) c.ub = (c.lb + roll(60)) & mask(shape);
      if (roll(2) == 0) c.s = (c.lb + roll(60)) & mask(shape);
      if (iterations_of(shape, c, kMaxIterations) <= kMaxIterations) cases.push_back(c);
    }
    check(shape, cases);
  });
}
