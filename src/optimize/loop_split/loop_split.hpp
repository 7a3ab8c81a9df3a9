// src/optimize/loop_split/loop_split.hpp - which conditions split a loop, and the split itself
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/facts.hpp"
#include "optimize/edits.hpp"
#include "optimize/scopes.hpp"

namespace ptxgen::inline v0::optimize {

/// One comparison whose outcome a split decides.
struct SplitCompare {
  std::uint32_t statement = 0;  ///< the setp
  bool first = false;           ///< its outcome in the first of the two loops
};

/// A condition of a loop that changes once while the loop runs, and all comparisons that ask it.
struct SplitPlan {
  std::uint32_t loop = 0;
  std::uint32_t test = 0;              ///< number in Inductions::tests
  analysis::LoopComparison condition;  ///< of the first comparison
  std::vector<SplitCompare> compares;  ///< in the order of statements
  bool strict = true;                  ///< the first loop runs while value < bound, else <=, in the
                                       ///< order in which the loop runs
  bool behind_test = false;            ///< a turn makes the test before it asks
  bool decided = false;                ///< it never changes: no second loop is needed
  bool outcome_is_first = false;       ///< decided: with the outcome of the first loop
  /// The variable may wrap around unless the bound of the test is at most this (at least, if it
  /// runs down): the loop is first written twice, behind a branch on the bound, and the copy that
  /// runs within the limit is split next.
  std::optional<std::uint64_t> guard;
};

/// Why a condition does not split its loop.
struct SplitRefusal {
  std::string_view reason;  ///< a literal
  std::string message;
};

/// What is common to the conditions of one function while nothing changes.
class SplitFinder {
 public:
  explicit SplitFinder(analysis::Facts& facts) : facts_(facts) {}
  /// Looks at one setp of the function. False if it has nothing to do with a split, and need not
  /// be mentioned: outside loops, or it only decides whether a loop goes on. Else `plan` is filled
  /// in, or `refusal`.
  bool look(std::uint32_t statement, SplitPlan& plan, SplitRefusal& refusal);
  /// Whether the two conditions change at the same turn.
  [[nodiscard]] bool same(const SplitPlan& a, const SplitPlan& b) const;

 private:
  friend class SplitCheck;
  analysis::Facts& facts_;
  /// By loop: with which threads a condition in it must agree.
  std::vector<std::optional<analysis::Agreement>> needed_;
};

/// What stands against writing the loop twice, left at that test, whatever the condition; empty
/// reason if nothing.
[[nodiscard]] SplitRefusal cannot_copy(analysis::Facts& facts, const Scopes& scopes,
                                       std::uint32_t loop, std::uint32_t test);

/// The blocks of a loop in the order of their statements.
[[nodiscard]] std::vector<std::uint32_t> blocks_in_order(const analysis::Cfg& cfg,
                                                         std::uint32_t loop);

/// Writes the loop of the plan twice, or only decides its comparisons, or puts the plan's guard
/// before the loop and a copy of it.
void split(ptx::Module& module, ptx::Function& function, analysis::Facts& facts,
           const Scopes& scopes, Edits& edits, const SplitPlan& plan);

/// The instructions that a comparison's outcome decides: guarded ones, and the regions behind
/// branches.
struct SplitUse {
  std::uint32_t statement = 0;  ///< guarded by the outcome, or reading it
  bool guard = false;           ///< the outcome, or its opposite, is the guard
  bool negated = false;         ///< guard: of the outcome negated (copies, `not` counted)
};

/// Predicates that hold the outcome of a comparison, or its opposite: copies and negations.
struct SplitOutcome {
  std::uint32_t version = 0;
  std::uint32_t statement = 0;  ///< which wrote it
  bool negated = false;
  bool kept = false;  ///< read by something that is no guard: stays as a constant
};
[[nodiscard]] std::vector<SplitOutcome> outcomes_of(analysis::Facts& facts, std::uint32_t loop,
                                                    std::uint32_t statement);
/// Everything in the loop that reads one of them, in the order of statements.
[[nodiscard]] std::vector<SplitUse> uses_of(analysis::Facts& facts, std::uint32_t loop,
                                            const std::vector<SplitOutcome>& outcomes);

}  // namespace ptxgen::inline v0::optimize
