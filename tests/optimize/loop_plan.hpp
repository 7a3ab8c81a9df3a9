// tests/optimize/loop_plan.hpp - bounds and steps of random loops that end
#pragma once

#include <cstdint>
#include <string>

#include "ptx/dice.hpp"

namespace ptxgen::test {

enum class Comparison : std::uint8_t { lt, le, gt, ge, eq, ne };
[[nodiscard]] std::string to_text(Comparison comparison);
[[nodiscard]] std::string inverse(Comparison comparison);  ///< as text

enum class LoopShape : std::uint8_t {
  Top,      ///< tested before each round
  Guarded,  ///< tested once before the loop, then after each round
  Bottom,   ///< tested after each round
};

/// `for (iv = start; iv comparison bound; iv += step)`, in so many bits, wrapping around.
struct LoopPlan {
  unsigned bits = 32;
  bool is_signed = false;
  LoopShape shape = LoopShape::Top;
  Comparison comparison = Comparison::lt;
  std::uint64_t start = 0, bound = 0;
  std::uint64_t step = 1;  ///< what the instruction takes, in those bits
  bool subtracts = false;  ///< iv -= step
};

/// Rounds that it runs, or `max` + 1 if they are more.
[[nodiscard]] unsigned rounds(const LoopPlan& plan, unsigned max);

/// A loop of at most `max` rounds, often with start or bound where numbers wrap around; with
/// `varies` also for every bound up to 3 more.
[[nodiscard]] LoopPlan plan_loop(Dice& dice, unsigned max, bool varies);

/// A number that is interesting to compare the induction variable with.
[[nodiscard]] std::uint64_t plan_point(Dice& dice, const LoopPlan& plan);

/// `u32` and the like.
[[nodiscard]] std::string plan_type(const LoopPlan& plan);
/// The step as a literal.
[[nodiscard]] std::string step_text(const LoopPlan& plan);

}  // namespace ptxgen::test
