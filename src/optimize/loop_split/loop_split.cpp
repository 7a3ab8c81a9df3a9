// src/optimize/loop_split/loop_split.cpp - the pass loop_split
#include "optimize/loop_split/loop_split.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "optimize/function_facts.hpp"
#include "ptxgen/optimize/passes.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::optimize {

using analysis::kNoNode;
using ptx::Function;
using ptx::Instruction;
using ptx::kNone;
using ptx::Op;

namespace {

// A split makes two loops without its condition, and a guard one that can be split, so that few
// rounds suffice; this bounds what a mistake costs.
constexpr int kMaxIterations = 64;

constexpr std::size_t kMaxConditions = 64;

// Instructions that justify a split of any size: they access memory, synchronize with other
// threads, or branch.
bool is_weighty(const Instruction& s) {
  using ptx::Flag;
  const Flag flags = ptx::info(s.op).flags;
  const Flag weighty = Flag::ReadsMemory | Flag::WritesMemory | Flag::Barrier | Flag::Convergent |
                       Flag::Branch | Flag::Call | Flag::Asynchronous;
  return ptx::has(flags, weighty);
}

struct Candidate {
  SplitPlan plan;
  SplitRefusal refusal;
  std::uint32_t statement = 0;
  [[nodiscard]] bool refused() const { return !refusal.reason.empty(); }
};

class LoopSplit {
 public:
  LoopSplit(Function& function, PassContext& context) : function_(function), context_(context) {}

  void run() {
    for (int iteration = 0; iteration < kMaxIterations; ++iteration) {
      if (!once()) return;
    }
  }

 private:
  // One iteration: at most one split per loop nest. False if nothing was split.
  bool once() {
    FunctionFacts& facts = context_.facts(function_);
    context_.visit(function_.body.size());
    if (facts.cfg().loops().loops().empty()) return false;
    const Scopes& scopes = facts.scopes();
    std::vector<Candidate> candidates = find(facts, scopes);
    limit_growth(facts, candidates);
    Edits edits(context_.module(), function_);
    const std::vector<const Candidate*> chosen = choose(facts, candidates);
    for (const Candidate* candidate : chosen) report(facts, *candidate);
    refusals(candidates, chosen.empty());
    if (chosen.empty()) return false;
    for (const Candidate* candidate : chosen) {
      split(context_.module(), function_, facts, scopes, edits, candidate->plan);
      context_.visit(facts.cfg().loops().nodes(candidate->plan.loop).size());
    }
    edits.apply();
    context_.changed();
    return true;
  }

  std::vector<Candidate> find(analysis::Facts& facts, const Scopes& scopes) {
    std::vector<Candidate> candidates;
    std::vector<std::vector<std::size_t>> of_loop(facts.cfg().loops().loops().size());
    SplitFinder finder(facts);
    Candidate next;  // filled in anew where `look` finds one
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
      next.statement = i;
      if (!finder.look(i, next.plan, next.refusal)) continue;
      if (!next.refused()) {
        const auto& others = of_loop[next.plan.loop];
        // So many different ones are beyond what a function may grow in any case.
        const auto known =
            others.begin() + static_cast<std::ptrdiff_t>(std::min(others.size(), kMaxConditions));
        const auto same = std::find_if(others.begin(), known, [&](std::size_t n) {
          return finder.same(candidates[n].plan, next.plan);
        });
        if (same != known) {
          candidates[*same].plan.compares.push_back(next.plan.compares[0]);
          continue;
        }
        of_loop[next.plan.loop].push_back(candidates.size());
      }
      candidates.push_back(std::move(next));
    }
    std::map<std::pair<std::uint32_t, std::uint32_t>, SplitRefusal> obstacles;
    for (Candidate& candidate : candidates) {
      if (candidate.refused()) continue;
      weigh(facts, candidate);
      if (candidate.refused() || candidate.plan.decided) continue;
      const std::pair loop{candidate.plan.loop, candidate.plan.test};
      const auto known = obstacles.find(loop);
      candidate.refusal =
          known != obstacles.end()
              ? known->second
              : obstacles.emplace(loop, cannot_copy(facts, scopes, loop.first, loop.second))
                    .first->second;
    }
    return candidates;
  }

  // ---- is it worth it?

  std::int16_t hint_of_loop(analysis::Facts& facts, const SplitPlan& plan) const {
    const analysis::Cfg& cfg = facts.cfg();
    const std::uint32_t header = cfg.loops().loops()[plan.loop].header;
    for (const std::uint32_t from : cfg.predecessors(header)) {
      const std::uint32_t branch = cfg.blocks()[from].terminator;
      if (branch == kNone || !cfg.loops().contains(plan.loop, from)) continue;
      if (function_.body[branch].split_hint != ptx::kNoSplitHint) {
        return function_.body[branch].split_hint;
      }
    }
    const std::uint32_t test = facts.inductions().tests(plan.loop)[plan.test].branch;
    if (function_.body[test].split_hint != ptx::kNoSplitHint) {
      return function_.body[test].split_hint;
    }
    if (function_.split_hint != ptx::kNoSplitHint) return function_.split_hint;
    return context_.options().split_threshold;
  }

  void weigh(analysis::Facts& facts, Candidate& candidate) {
    const SplitPlan& plan = candidate.plan;
    const std::int16_t of_loop = hint_of_loop(facts, plan);
    std::uint32_t largest = 0;
    std::int16_t min_threshold = 0;
    std::uint32_t plain = 0;  // guarded instructions and readers, taken together
    bool heavy = false;
    const auto large_enough = [&](std::int16_t threshold, std::uint32_t size, bool weighty) {
      if (threshold <= 0) return false;
      if (min_threshold == 0 || threshold < min_threshold) min_threshold = threshold;
      largest = std::max(largest, size);
      return threshold == 1 || weighty || size >= static_cast<std::uint32_t>(threshold);
    };
    for (const SplitCompare& compare : plan.compares) {
      const auto outcomes = outcomes_of(facts, plan.loop, compare.statement);
      for (const SplitUse& use : uses_of(facts, plan.loop, outcomes)) {
        const Instruction& s = function_.body[use.statement];
        if (!use.guard || !s.is(Op::bra)) {
          ++plain;
          heavy = heavy || (use.guard && is_weighty(s));
          continue;
        }
        const std::int16_t hint = s.split_hint != ptx::kNoSplitHint ? s.split_hint : of_loop;
        const auto [size, weighty] =
            hint > 1 ? region(facts, plan, use.statement) : std::pair(0u, false);
        if (large_enough(hint, size, weighty)) return;
      }
    }
    if (plain != 0 && large_enough(of_loop, plain, heavy)) return;
    if (min_threshold == 0) {
      candidate.refusal = {"hint-zero",
                           "the hint of the condition, its loop or its kernel is 0: no split"};
      return;
    }
    candidate.refusal = {
        "unprofitable",
        format_text("the condition guards at most {}, none of which accesses memory, "
                    "synchronizes or branches, and the threshold is {}",
                    count_text(largest, "instruction"), min_threshold)};
  }

  // The larger of the two sides of a branch: the blocks that only that side reaches.
  std::pair<std::uint32_t, bool> region(analysis::Facts& facts, const SplitPlan& plan,
                                        std::uint32_t branch) {
    const analysis::Cfg& cfg = facts.cfg();
    const std::uint32_t block = cfg.block_of(branch);
    std::uint32_t largest = 0;
    bool weighty = false;
    for (const std::uint32_t side : cfg.successors(block)) {
      if (side == cfg.exit() || cfg.predecessors(side).size() != 1) continue;
      std::uint32_t size = 0;
      for (const std::uint32_t inside : cfg.loops().nodes(plan.loop)) {
        if (!cfg.dominators().dominates(side, inside)) continue;
        for (std::uint32_t i = cfg.blocks()[inside].first; i < cfg.blocks()[inside].end; ++i) {
          const Instruction& s = function_.body[i];
          if (s.kind != ptx::StatementKind::Instruction) continue;
          // The jump over the other side is no part of it.
          if (s.is(Op::bra) && !s.guard.present()) continue;
          ++size;
          weighty = weighty || is_weighty(s);
        }
      }
      largest = std::max(largest, size);
    }
    return {largest, weighty};
  }

  // ---- how much may the function grow?

  // Each condition that splits a loop doubles its statements. All or none of a nest's conditions
  // are taken: what remains when the limit is met must look the same to a second run.
  void limit_growth(analysis::Facts& facts, std::vector<Candidate>& candidates) {
    const auto loops = facts.cfg().loops().loops();
    std::vector<std::uint32_t> own(loops.size(), 0), above(loops.size(), 0),
        deepest(loops.size(), 0);
    std::vector<bool> guarded(loops.size(), false);
    for (const Candidate& candidate : candidates) {
      if (candidate.refused() || candidate.plan.decided) continue;
      ++own[candidate.plan.loop];
      guarded[candidate.plan.loop] = guarded[candidate.plan.loop] || candidate.plan.guard;
    }
    // The loop as it was stays beside what is split.
    for (std::size_t l = 0; l < loops.size(); ++l) own[l] += guarded[l] ? 1 : 0;
    for (std::size_t l = 0; l < loops.size(); ++l) {
      above[l] = own[l] + (loops[l].parent == kNoNode ? 0 : above[loops[l].parent]);
      deepest[l] = above[l];
    }
    for (std::size_t l = loops.size(); l-- > 0;) {
      if (loops[l].parent == kNoNode) continue;
      std::uint32_t& outer = deepest[loops[l].parent];
      outer = std::max(outer, deepest[l]);
    }
    const std::uint32_t limit = context_.options().growth_limit;
    for (Candidate& candidate : candidates) {
      if (candidate.refused() || candidate.plan.decided) continue;
      const std::uint32_t doublings = deepest[candidate.plan.loop];
      if (doublings < 32 && (std::uint64_t{1} << doublings) <= limit) continue;
      candidate.refusal = {
          "growth-limit",
          format_text(
              "the {} conditions of this loop nest would copy its inner statements {} times, "
              "the limit is {}: raise it, or give the hint 0 to less important conditions",
              doublings,
              doublings < 32 ? std::to_string(std::uint64_t{1} << doublings) : "too many", limit)};
    }
  }

  // At most one candidate of each loop, and none of two loops of which one holds the other; inner
  // loops first.
  static std::vector<const Candidate*> choose(analysis::Facts& facts,
                                              const std::vector<Candidate>& candidates) {
    const auto loops = facts.cfg().loops().loops();
    std::vector<const Candidate*> of_loop(loops.size(), nullptr);
    for (const Candidate& candidate : candidates) {
      if (candidate.refused()) continue;
      const Candidate*& first = of_loop[candidate.plan.loop];
      // Decided conditions first: they need no second loop.
      if (first == nullptr || (candidate.plan.decided && !first->plan.decided)) first = &candidate;
    }
    std::vector<bool> taken(loops.size(), false);
    std::vector<const Candidate*> chosen;
    for (std::size_t l = loops.size(); l-- > 0;) {
      if (!taken[l] && of_loop[l] != nullptr) {
        chosen.push_back(of_loop[l]);
        taken[l] = true;
      }
      if (taken[l] && loops[l].parent != kNoNode) taken[loops[l].parent] = true;
    }
    std::reverse(chosen.begin(), chosen.end());
    return chosen;
  }

  // ---- decisions

  // Reports conditions of the original loops only; later iterations also find their copies and
  // comparisons added by a split.
  void refusals(const std::vector<Candidate>& candidates, bool last) {
    for (const Candidate& candidate : candidates) {
      const Instruction& s = function_.body[candidate.statement];
      const std::pair place{s.line, s.site};
      if (!candidate.refused()) {
        if (first_iteration_) open_.insert(place);
        continue;
      }
      if (!first_iteration_ && (!last || !open_.contains(place))) continue;
      if (!first_iteration_ && !reported_.insert({place, candidate.refusal.message}).second)
        continue;
      context_.decide(function_, candidate.statement, false, candidate.refusal.reason,
                      candidate.refusal.message);
    }
    first_iteration_ = false;
  }

  void report(analysis::Facts& facts, const Candidate& candidate) {
    const auto loops = facts.cfg().loops().loops();
    const std::uint32_t header = loops[candidate.plan.loop].header;
    const std::uint32_t line = function_.body[facts.cfg().blocks()[header].first].line;
    std::string message = "the loop";
    if (line != 0) message += format_text(" at line {}", line);
    if (candidate.plan.decided) {
      const bool holds = candidate.plan.compares[0].first == candidate.plan.outcome_is_first;
      message += " never changes the outcome: the condition always ";
      message += holds ? "holds" : "fails";
      context_.decide(function_, candidate.statement, true, "decided", std::move(message));
      return;
    }
    if (candidate.plan.guard) {
      message +=
          " was copied after a branch on its bound, so that in the copy its variable never "
          "wraps around and the condition can split it";
      context_.decide(function_, candidate.statement, true, "guarded", std::move(message));
      return;
    }
    message += " became two, the condition ";
    message += candidate.plan.compares[0].first ? "true in the first and false in the second"
                                                : "false in the first and true in the second";
    context_.decide(function_, candidate.statement, true, "split", std::move(message));
  }

  Function& function_;
  PassContext& context_;
  using Place = std::pair<std::uint32_t, std::uint32_t>;  // line and call site
  bool first_iteration_ = true;
  std::set<Place> open_;
  std::set<std::pair<Place, std::string>> reported_;
};

}  // namespace

void loop_split(Function& function, PassContext& context) { LoopSplit(function, context).run(); }

}  // namespace ptxgen::inline v0::optimize
