// src/check/shared_race/waits.cpp - waits at mbarriers
#include "check/shared_race/waits.hpp"

#include <algorithm>

#include "check/shared_race/overlap.hpp"

namespace ptxgen::inline v0::gates {

using namespace ptx;

namespace {

// Operand numbers of the mbarrier.
constexpr std::uint32_t kOfWait = 1;
constexpr std::uint32_t kOfCopy = 3;

}  // namespace

bool MbarrierWaits::at(std::uint32_t statement) const {
  const Instruction& s = facts_.function().body[statement];
  if (!s.is(Op::mbarrier_try_wait_parity) && !s.is(Op::mbarrier_try_wait) &&
      !s.is(Op::mbarrier_test_wait_parity) && !s.is(Op::mbarrier_test_wait))
    return false;
  if (s.guard.present()) return false;
  // Operands that do not fit the row count as read: such a wait has no result.
  const auto accesses = facts_.index().accesses(statement);
  return std::any_of(accesses.begin(), accesses.end(), [&](const analysis::NumberedAccess& a) {
    const std::uint32_t answer = a.write ? facts_.versions().written(statement, a.reg) : kNone;
    return answer != kNone && !facts_.versions().uses(answer).empty();
  });
}

bool MbarrierWaits::at(std::uint32_t statement, std::uint32_t copy) {
  if (!at(statement)) return false;
  const auto [found, result] = may_be_one_.try_emplace({statement, copy}, true);
  if (result) {
    const std::uint32_t size = 8;  // of an mbarrier
    const Comparison comparison{&form(statement, kOfWait),
                                &form(accesses_[copy].statement, kOfCopy),
                                size,
                                size,
                                Pairs::All,
                                [](const SymbolKey&) { return false; }};
    found->second = overlap(comparison, budget_).conflict != Conflict::No;
  }
  return found->second;
}

const AccessForm& MbarrierWaits::form(std::uint32_t statement, std::uint32_t operand) {
  const auto [found, result] = mbarriers_.try_emplace(statement);
  if (result) found->second = forms_.of({.statement = statement, .operand = operand});
  return found->second;
}

}  // namespace ptxgen::inline v0::gates
