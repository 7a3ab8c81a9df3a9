// src/optimize/loop_split/loop_split.hpp - internal interface of the pass loop_split
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

/// A condition that changes once while its loop runs, and all comparisons that compute it.
struct SplitPlan {
  std::uint32_t loop = 0;
  std::uint32_t test = 0;              ///< number in Inductions::tests
  analysis::LoopComparison condition;  ///< of the first comparison
  std::vector<SplitCompare> compares;  ///< in the order of statements
  bool strict = true;                  ///< the first loop runs while value < bound, else <=, in the
                                       ///< order in which the loop runs
  bool after_test = false;             ///< an iteration executes the test before the comparison
  bool decided = false;                ///< the condition never changes: no second loop is needed
  bool outcome_is_first = false;       ///< decided: with the outcome of the first loop
  /// The variable may wrap around unless the bound of the test is at most this (at least, if it
  /// runs down). The loop is first duplicated under a branch on the bound; the copy for bounds
  /// within the limit is split next.
  std::optional<std::uint64_t> guard;
};

/// Why a condition does not split its loop.
struct SplitRefusal {
  std::string_view reason;  ///< a literal
  std::string message;
};

/// State shared by the conditions of one function while it does not change.
class SplitFinder {
 public:
  explicit SplitFinder(analysis::Facts& facts) : facts_(facts) {}
  /// Checks one setp of the function. False if it is no candidate and is not reported: outside of
  /// loops, or only used as the test of a loop. Otherwise fills in `plan` or
  /// `refusal`.
  bool look(std::uint32_t statement, SplitPlan& plan, SplitRefusal& refusal);
  /// Whether the two conditions change at the same iteration.
  [[nodiscard]] bool same(const SplitPlan& a, const SplitPlan& b) const;

 private:
  friend class SplitCheck;
  analysis::Facts& facts_;
  /// By loop: the required agreement of a condition in it.
  std::vector<std::optional<analysis::Agreement>> needed_;
};

/// Why the loop with that test cannot be duplicated, for any condition; an empty reason if it
/// can.
[[nodiscard]] SplitRefusal cannot_copy(analysis::Facts& facts, const Scopes& scopes,
                                       std::uint32_t loop, std::uint32_t test);

/// The blocks of a loop in the order of their statements.
[[nodiscard]] std::vector<std::uint32_t> blocks_in_order(const analysis::Cfg& cfg,
                                                         std::uint32_t loop);

/// Writes the loop of the plan twice, or only decides its comparisons, or puts the plan's guard
/// before the loop and a copy of it.
void split(ptx::Module& module, ptx::Function& function, analysis::Facts& facts,
           const Scopes& scopes, Edits& edits, const SplitPlan& plan);

/// The instructions that a comparison's outcome decides: guarded ones, and the regions after
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
