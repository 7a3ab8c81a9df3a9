// tests/optimize/loop_plan.cpp - bounds and steps of random loops that end
#include "loop_plan.hpp"

namespace ptxgen::test {

namespace {

std::uint64_t mask_of(unsigned bits) {
  return bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

/// As a number whose order is the type's.
std::uint64_t ordered(std::uint64_t value, unsigned bits, bool is_signed) {
  value &= mask_of(bits);
  return is_signed ? value ^ (std::uint64_t{1} << (bits - 1)) : value;
}

bool holds(const LoopPlan& plan, std::uint64_t iv) {
  const std::uint64_t a = ordered(iv, plan.bits, plan.is_signed);
  const std::uint64_t b = ordered(plan.bound, plan.bits, plan.is_signed);
  switch (plan.comparison) {
    case Comparison::lt:
      return a < b;
    case Comparison::le:
      return a <= b;
    case Comparison::gt:
      return a > b;
    case Comparison::ge:
      return a >= b;
    case Comparison::eq:
      return a == b;
    case Comparison::ne:
      return a != b;
  }
  return false;
}

/// 0 or where numbers of the type end, and a few around it.
std::uint64_t neighbour(Dice& dice, unsigned bits) {
  const std::uint64_t half = std::uint64_t{1} << (bits - 1);
  const std::uint64_t ends[] = {0, 0, mask_of(bits), half, half - 1};
  return (dice.pick(ends) + dice.between(0, 14) - 7) & mask_of(bits);
}

std::uint64_t next(const LoopPlan& plan, std::uint64_t iv) {
  return (plan.subtracts ? iv - plan.step : iv + plan.step) & mask_of(plan.bits);
}

bool ends(LoopPlan plan, unsigned max, bool varies) {
  for (unsigned more = 0; more <= (varies ? 3u : 0u); ++more) {
    if (rounds(plan, max) > max) return false;
    plan.bound = (plan.bound + 1) & mask_of(plan.bits);
  }
  return true;
}

}  // namespace

std::string to_text(Comparison comparison) {
  constexpr const char* kText[] = {"lt", "le", "gt", "ge", "eq", "ne"};
  return kText[static_cast<unsigned>(comparison)];
}

std::string inverse(Comparison comparison) {
  constexpr const char* kText[] = {"ge", "gt", "le", "lt", "ne", "eq"};
  return kText[static_cast<unsigned>(comparison)];
}

unsigned rounds(const LoopPlan& plan, unsigned max) {
  std::uint64_t iv = plan.start;
  unsigned count = 0;
  if (plan.shape != LoopShape::Bottom && !holds(plan, iv)) return 0;
  do {
    ++count;
    iv = next(plan, iv);
  } while (count <= max && holds(plan, iv));
  return count;
}

LoopPlan plan_loop(Dice& dice, unsigned max, bool varies) {
  constexpr unsigned kBits[] = {32, 32, 32, 32, 64, 64, 16};
  constexpr std::uint64_t kSteps[] = {1, 1, 1, 2, 3, 4, 7, 0x7fff, 5};
  for (;;) {
    LoopPlan plan;
    plan.bits = dice.pick(kBits);
    plan.is_signed = dice.chance(50);
    plan.shape = static_cast<LoopShape>(dice.below(3));
    plan.comparison = static_cast<Comparison>(dice.below(6));
    plan.step = dice.pick(kSteps);
    plan.subtracts = dice.chance(25);
    if (dice.chance(30)) plan.step = (0 - plan.step) & mask_of(plan.bits);
    plan.start = dice.chance(40) ? dice.below(20) : neighbour(dice, plan.bits);
    std::uint64_t iv = plan.start;
    const std::uint32_t planned = dice.between(0, max);
    for (std::uint32_t i = 0; i < planned; ++i) iv = next(plan, iv);
    plan.bound = iv;
    if (plan.comparison != Comparison::ne && dice.chance(50)) {
      plan.bound = (plan.bound + dice.between(0, 4) - 2) & mask_of(plan.bits);
    }
    if (dice.chance(20)) plan.bound = neighbour(dice, plan.bits);
    if (!ends(plan, max, varies)) continue;
    if (rounds(plan, max) < 2 && dice.chance(80)) continue;
    return plan;
  }
}

std::uint64_t plan_point(Dice& dice, const LoopPlan& plan) {
  if (dice.chance(15)) return neighbour(dice, plan.bits);
  if (dice.chance(15)) return plan.bound;
  std::uint64_t iv = plan.start;
  const std::uint32_t steps = dice.between(0, rounds(plan, 9) + 1);
  for (std::uint32_t i = 0; i < steps; ++i) iv = next(plan, iv);
  return (iv + dice.between(0, 2) - 1) & mask_of(plan.bits);
}

std::string plan_type(const LoopPlan& plan) {
  return (plan.is_signed ? "s" : "u") + std::to_string(plan.bits);
}

std::string step_text(const LoopPlan& plan) {
  const std::uint64_t half = std::uint64_t{1} << (plan.bits - 1);
  if (plan.step < half) return std::to_string(plan.step);
  return "-" + std::to_string((0 - plan.step) & mask_of(plan.bits));
}

}  // namespace ptxgen::test
