// src/check/analyze/loops.cpp - the rule loop-branch-direction
#include <algorithm>
#include <optional>
#include <string>

#include "check/analyze/rules.hpp"
#include "ptx/semantics/compare.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

namespace {

using namespace ptx;
using analysis::kNoNode;
using analysis::Version;
using analysis::VersionUse;

constexpr std::string_view kLoopRule =
    "a loop continues by a branch back to its start while its condition holds, and ends by falling "
    "through after it";

class LoopBranches {
 public:
  explicit LoopBranches(RuleFindings& findings)
      : findings_(findings),
        facts_(findings.facts()),
        function_(findings.function()),
        cfg_(facts_.cfg()),
        loops_(cfg_.loops()),
        versions_(facts_.versions()) {}

  void run() {
    check_loops();
    check_missing_branches();
  }

 private:
  const Instruction& at(std::uint32_t statement) const { return function_.body[statement]; }
  std::uint32_t read(std::uint32_t statement, Register reg) const {
    const std::uint32_t number = facts_.index().find(reg);
    return number == kNone ? kNone : versions_.read(statement, number);
  }
  std::uint32_t written(std::uint32_t statement) const {
    const auto operands = function_.operands_of(at(statement));
    if (operands.empty() || operands[0].kind != OperandKind::Register) return kNone;
    const std::uint32_t number = facts_.index().find(operands[0].as_register());
    return number == kNone ? kNone : versions_.written(statement, number);
  }

  // Loops ---------------------------------------------------------------------------------------

  void check_loops() {
    const auto loops = loops_.loops();
    if (loops.empty()) return;
    // Which loops control can leave: an edge out of one leaves those inside it as well.
    std::vector<bool> left(loops.size());
    std::vector<std::uint32_t> latch(loops.size(), kNone);
    for (std::uint32_t block = 0; block < cfg_.blocks().size(); ++block) {
      if (!cfg_.reachable(block)) continue;
      for (const std::uint32_t to : cfg_.successors(block)) {
        for (std::uint32_t l = loops_.innermost(block); l != kNoNode; l = loops[l].parent) {
          if (loops_.contains(l, to)) {
            if (to == loops[l].header) latch[l] = block;
            break;
          }
          left[l] = true;
        }
      }
    }
    for (std::uint32_t l = 0; l < loops.size(); ++l) {
      if (latch[l] == kNone) continue;
      const std::uint32_t end = cfg_.blocks()[latch[l]].terminator;
      if (end == kNone) continue;
      if (!left[l] && !stops(l)) {
        report_endless(l, end);
      } else {
        check_direction(l, end);
      }
    }
  }

  /// Whether the loop ends the kernel by itself.
  bool stops(std::uint32_t loop) const {
    for (const std::uint32_t block : loops_.nodes(loop)) {
      const analysis::Block& b = cfg_.blocks()[block];
      for (std::uint32_t i = b.first; i < b.end; ++i) {
        if (at(i).is(Op::trap) ||
            (at(i).kind == StatementKind::Instruction && has(info(at(i).op).flags, Flag::Call)))
          return true;
      }
    }
    return false;
  }

  std::uint32_t header_of(std::uint32_t loop) const {
    return cfg_.blocks()[loops_.loops()[loop].header].first;
  }

  void report_endless(std::uint32_t loop, std::uint32_t end) {
    Finding& finding = findings_.report(
        Severity::Warning, "loop-branch-direction", end,
        format_text("no path leaves the loop that this branch closes; the loop begins at {}",
                    findings_.place(header_of(loop))),
        kLoopRule, "branch back under a condition, or branch to the statement after the loop");
    finding.other_line = at(header_of(loop)).line;
  }

  /// Checks the condition of a bottom-tested loop that compares a counter with a fixed bound.
  void check_direction(std::uint32_t loop, std::uint32_t end) {
    const Instruction& branch = at(end);
    if (!branch.is(Op::bra) || !branch.guard.present()) return;
    const std::uint32_t block = cfg_.block_of(end);
    const auto successors = cfg_.successors(block);
    if (successors.size() != 2) return;
    const bool back_first = successors[0] == loops_.loops()[loop].header;
    if (loops_.contains(loop, successors[back_first ? 1 : 0])) return;
    const std::uint32_t condition = read(end, branch.guard.predicate);
    if (condition == kNone || versions_[condition].kind != Version::Kind::Write) return;
    const std::uint32_t compare = versions_[condition].statement;
    const Instruction& setp = at(compare);
    if (versions_[condition].partial || !compares_integers(setp)) return;
    const auto operands = function_.operands_of(setp);
    if (operands.size() != 3) return;  // the second predicate of `p|q` is the inverse
    const bool goes_on_if = back_first != branch.guard.negated;
    for (std::size_t i = 1; i < 3; ++i) {
      const std::optional<std::int64_t> step = step_of(loop, compare, operands[i]);
      if (!step || *step == 0 || !fixed(loop, compare, operands[3 - i])) continue;
      Modifier comparison = setp.get(Field::Comparison);
      if (i == 2) comparison = mirrored(comparison);
      const auto goes_on = [&](Ordering counter) {
        return holds(comparison, counter) == goes_on_if;
      };
      const bool above = goes_on(Ordering::Greater), equal = goes_on(Ordering::Equal);
      if (above == goes_on(Ordering::Less)) return;  // tests for equality
      if (runs_away(above, !above, *step, kind(setp.type()) == TypeKind::Signed))
        report_direction(loop, end, operands[i], operands[3 - i], *step,
                         above   ? (equal ? "not below" : "above")
                         : equal ? "not above"
                                 : "below");
      return;
    }
  }

  static bool compares_integers(const Instruction& s) {
    return s.kind == StatementKind::Instruction &&
           (s.op == Op::setp_signed || s.op == Op::setp_unsigned);
  }
  /// Whether a counter moves away from its bound. An unsigned countdown by `i < n` is legal: it
  /// ends when the counter wraps below zero.
  static bool runs_away(bool above, bool below, std::int64_t step, bool is_signed) {
    return step > 0 ? above : below && is_signed;
  }

  /// A constant, or a value from before the loop.
  bool fixed(std::uint32_t loop, std::uint32_t statement, const Operand& operand) const {
    if (operand.kind == OperandKind::Integer) return true;
    if (operand.kind != OperandKind::Register) return false;
    const std::uint32_t version = read(statement, operand.as_register());
    return version != kNone && (versions_[version].kind == Version::Kind::Entry ||
                                !loops_.contains(loop, versions_[version].block));
  }

  /// The increment of a counter per iteration: a phi of the header, read before or after the
  /// additions of constants that lead back to it.
  std::optional<std::int64_t> step_of(std::uint32_t loop, std::uint32_t statement,
                                      const Operand& operand) const {
    if (operand.kind != OperandKind::Register) return {};
    std::uint32_t version = read(statement, operand.as_register());
    if (version == kNone) return {};
    const std::uint32_t header = loops_.loops()[loop].header;
    if (!(versions_[version].kind == Version::Kind::Phi && versions_[version].block == header)) {
      const auto start = start_of(version);
      if (!start) return {};
      version = start->first;
    }
    if (versions_[version].kind != Version::Kind::Phi || versions_[version].block != header)
      return {};
    std::optional<std::int64_t> step;
    const auto predecessors = cfg_.predecessors(header);
    const auto inputs = versions_.inputs(version);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == kNone || !loops_.contains(loop, predecessors[i])) continue;
      const auto start = start_of(inputs[i]);
      if (!start || start->first != version || (step && *step != start->second)) return {};
      step = start->second;
    }
    return step;
  }

  /// The version that constants were added to, and their sum.
  std::optional<std::pair<std::uint32_t, std::int64_t>> start_of(std::uint32_t version) const {
    std::int64_t sum = 0;
    for (int count = 0; count < 64; ++count) {
      const Version& v = versions_[version];
      if (v.kind != Version::Kind::Write) return std::pair{version, sum};
      const Instruction& s = at(v.statement);
      if (v.partial || s.guard.present()) return {};
      const auto operands = function_.operands_of(s);
      const bool copies = s.is(Op::mov) && operands.size() == 2;
      const bool adds = (s.is(Op::add) || s.is(Op::sub)) && operands.size() == 3 &&
                        operands[2].kind == OperandKind::Integer;
      if ((!copies && !adds) || operands[1].kind != OperandKind::Register)
        return std::pair{version, sum};
      if (adds) {
        std::int64_t constant = operands[2].offset();
        if (bits(s.type()) == 32) constant = static_cast<std::int32_t>(constant);
        sum += s.is(Op::add) ? constant : -constant;
      }
      version = read(v.statement, operands[1].as_register());
      if (version == kNone) return {};
    }
    return {};
  }

  std::string text(const Operand& operand) const {
    return operand.kind == OperandKind::Integer ? std::to_string(operand.offset())
                                                : findings_.name(operand);
  }

  void report_direction(std::uint32_t loop, std::uint32_t end, const Operand& counter,
                        const Operand& bound, std::int64_t step, std::string_view side) {
    Finding& finding = findings_.report(
        Severity::Warning, "loop-branch-direction", end,
        format_text("the loop continues while {} is {} {}, but each iteration {}: it ends after "
                    "its first iteration or runs far too long",
                    findings_.name(counter), side, text(bound),
                    step > 0 ? format_text("adds {}", step) : format_text("subtracts {}", -step)),
        kLoopRule, "invert the comparison, or negate the guard of the branch");
    finding.other_line = at(header_of(loop)).line;
  }

  // Loops without a branch back
  // ------------------------------------------------------------------------

  /// Labels that no branch, table or debug statement names.
  std::vector<bool> named_labels() const {
    std::vector<bool> named(function_.labels.size());
    for (const Instruction& s : function_.body) {
      if (s.kind == StatementKind::Label) continue;
      for (const Operand& operand : function_.operands_of(s)) {
        if (operand.kind == OperandKind::Label && operand.id < named.size())
          named[operand.id] = true;
      }
    }
    return named;
  }

  /// `L: .. add i, i, 1; setp p, i, n; @p bra END; .. END:` where nothing leads back to L.
  void check_missing_branches() {
    const std::vector<bool> named = named_labels();
    std::uint32_t start = kNone;
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
      const Instruction& s = at(i);
      if (s.kind == StatementKind::Label) {
        const auto operands = function_.operands_of(s);
        if (!operands.empty() && operands[0].id < named.size() && !named[operands[0].id]) start = i;
      } else if (start != kNone && advances(i, start)) {
        const std::uint32_t branch = forward_branch(i);
        if (branch == kNone) continue;
        report_missing_branch(start, i, branch);
        start = kNone;
      }
    }
  }

  /// Whether a counter from before `start` is advanced here, and only comparisons read the result.
  bool advances(std::uint32_t statement, std::uint32_t start) const {
    const Instruction& s = at(statement);
    if (!(s.is(Op::add) || s.is(Op::sub)) || s.guard.present()) return false;
    const auto operands = function_.operands_of(s);
    if (operands.size() != 3 || operands[0] != operands[1]) return false;
    if (operands[0].kind != OperandKind::Register) return false;
    const std::uint32_t before = read(statement, operands[1].as_register());
    const std::uint32_t after = written(statement);
    if (before == kNone || versions_[before].kind != Version::Kind::Write ||
        versions_[before].statement > start)
      return false;
    const auto only_compared = [&](std::uint32_t version) {
      const auto uses = versions_.uses(version);
      return std::all_of(uses.begin(), uses.end(), [&](const VersionUse& use) {
        return use.statement != kNone && (at(use.statement).kind != StatementKind::Instruction ||
                                          info(at(use.statement).op).mnemonic == "setp");
      });
    };
    if (after == kNone || !only_compared(after)) return false;
    return is_tested(before, start) || is_tested(after, start);
  }

  /// Whether a branch after `start` depends on a comparison of the version.
  bool is_tested(std::uint32_t version, std::uint32_t start) const {
    for (const VersionUse& use : versions_.uses(version)) {
      if (use.statement == kNone || use.statement < start) continue;
      if (info(at(use.statement).op).mnemonic != "setp") continue;
      const std::uint32_t predicate = written(use.statement);
      if (predicate == kNone) continue;
      for (const VersionUse& guarded : versions_.uses(predicate)) {
        if (guarded.statement != kNone && at(guarded.statement).is(Op::bra)) return true;
      }
    }
    return false;
  }

  /// The branch that ends the block, if it leads forward.
  std::uint32_t forward_branch(std::uint32_t statement) const {
    const std::uint32_t block = cfg_.block_of(statement);
    const std::uint32_t end = cfg_.blocks()[block].terminator;
    if (end == kNone || !at(end).is(Op::bra)) return kNone;
    for (const std::uint32_t to : cfg_.successors(block)) {
      if (to < cfg_.blocks().size() && cfg_.blocks()[to].first <= end) return kNone;
    }
    return end;
  }

  void report_missing_branch(std::uint32_t start, std::uint32_t advance, std::uint32_t branch) {
    const auto operands = function_.operands_of(at(advance));
    const auto label = [&](std::uint32_t statement) {
      const Operand& operand = function_.operands_of(at(statement))[0];
      return format_text("'{}'", findings_.module().text(function_.labels[operand.id].name));
    };
    Finding& finding = findings_.report(
        Severity::Warning, "loop-branch-direction", branch,
        format_text("{} is advanced at {} and compared like a loop counter, but this "
                    "branch leads forward to {}, and no branch leads back to {} at {}",
                    findings_.name(operands[0]), findings_.place(advance), label(branch),
                    label(start), findings_.place(start)),
        kLoopRule, format_text("branch to {} while the loop continues", label(start)));
    finding.other_line = at(start).line;
  }

  RuleFindings& findings_;
  analysis::Facts& facts_;
  const Function& function_;
  const analysis::Cfg& cfg_;
  const analysis::LoopForest& loops_;
  const analysis::Versions& versions_;
};

}  // namespace

void find_loop_branch_directions(RuleFindings& findings) { LoopBranches(findings).run(); }

}  // namespace ptxgen::inline v0::gates
