// src/optimize/loop_split/write.cpp - writes the two loops of a split
#include <algorithm>
#include <map>
#include <optional>

#include "analysis/ordinal.hpp"
#include "optimize/loop_split/front.hpp"
#include "optimize/loop_split/loop_split.hpp"

// A loop with the test `value < bound` and the condition `other < limit` becomes
//
//     B = the minimum of bound and limit, both for the value that the test compares
//     if (!(first value < limit)) goto second        (unless the test precedes the comparison)
//     first:  do { body, the condition true } while (value < B)
//             if (value < bound) goto second, after its test
//             goto out
//     second: do { body, the condition false } while (value < bound)
//
// If the value may wrap around unless the bound is at most some limit, a first step writes
//
//     if (bound > limit) goto second
//     first:  do { body } while (value < bound)
//             goto out
//     second: do { body } while (value < bound)
//
// and the next step splits the first of these loops as above.
//
// All sums are computed in the order in which the loop runs, mapped to unsigned numbers (Ordinal),
// and saturate: nothing wraps around. The second loop continues after the first one in the same
// registers.

namespace ptxgen::inline v0::optimize {

using analysis::Block;
using analysis::Induction;
using analysis::kNoNode;
using analysis::LoopComparison;
using analysis::LoopTerm;
using analysis::LoopTest;
using analysis::Ordinal;
using analysis::Relation;
using ptx::Function;
using ptx::Instruction;
using ptx::kNone;
using ptx::LabelId;
using ptx::Modifier;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;
using ptx::StatementKind;
using ptx::Type;

namespace {

bool is_table(StatementKind kind) {
  return kind == StatementKind::BranchTargets || kind == StatementKind::CallTargets ||
         kind == StatementKind::CallPrototype;
}

bool falls_through(const Instruction& s) {
  return s.kind != StatementKind::Instruction || s.guard.present() ||
         !ptx::has(ptx::info(s.op).flags, ptx::Flag::Terminator);
}

Modifier modifier(Relation relation) {
  constexpr Modifier kModifiers[] = {Modifier::lt, Modifier::le, Modifier::gt,
                                     Modifier::ge, Modifier::eq, Modifier::ne};
  return kModifiers[static_cast<unsigned>(relation)];
}

class Splitter {
 public:
  Splitter(ptx::Module& module, Function& function, analysis::Facts& facts, const Scopes& scopes,
           Edits& edits, const SplitPlan& plan)
      : module_(module),
        function_(function),
        facts_(facts),
        cfg_(facts.cfg()),
        scopes_(scopes),
        edits_(edits),
        plan_(plan),
        test_(facts.inductions().tests(plan.loop)[plan.test]),
        variable_(facts.inductions().of(plan.loop)[plan.condition.value.variable]),
        order_{variable_.bits, plan.condition.is_signed, variable_.down()},
        blocks_(blocks_in_order(cfg_, plan.loop)),
        header_(cfg_.loops().loops()[plan.loop].header) {}

  void run() {
    if (!plan_.guard) collect_decisions();
    find_dead(true);
    find_dead(false);
    if (plan_.decided) {
      in_place(plan_.outcome_is_first);
      return;
    }
    find_entry();
    SplitFront front(edits_, at_, variable_.bits, like());
    if (plan_.guard) {
      second_ = edits_.new_label(scope_);
      enter_guarded(front);
      copy(front, {});
    } else {
      const SplitFront::Number bound = first_bound(front);
      second_ = edits_.new_label(scope_);
      if (!plan_.after_test) enter_second(front);
      copy(front, bound);
    }
    edits_.insert_before(at_, edits_.place(second_, like()));
    in_place(false);
  }

 private:
  std::uint32_t like() const { return test_.branch; }

  // ---- what the condition decides

  struct Decision {
    std::uint32_t statement;
    bool outcome_in_first;  // of the predicate that guards, or is written
    bool writes;            // a setp, a copy or a negation of it
    bool kept;
    bool negated_guard;
    std::uint32_t reg;  // written
  };

  void collect_decisions() {
    for (const SplitCompare& compare : plan_.compares) {
      const auto outcomes = outcomes_of(facts_, plan_.loop, compare.statement);
      for (const SplitOutcome& o : outcomes) {
        decisions_.push_back({o.statement, compare.first != o.negated, true, o.kept, false,
                              facts_.versions()[o.version].reg});
      }
      for (const SplitUse& use : uses_of(facts_, plan_.loop, outcomes)) {
        if (!use.guard) continue;
        // `negated` applies to the guard: it holds if the outcome does not.
        decisions_.push_back(
            {use.statement, compare.first != use.negated, false, false, false, kNone});
      }
    }
    std::stable_sort(
        decisions_.begin(), decisions_.end(),
        [](const Decision& a, const Decision& b) { return a.statement < b.statement; });
  }
  auto decisions(std::uint32_t statement) const {
    const auto first = std::lower_bound(
        decisions_.begin(), decisions_.end(), statement,
        [](const Decision& d, std::uint32_t number) { return d.statement < number; });
    auto last = first;
    while (last != decisions_.end() && last->statement == statement) ++last;
    return std::pair(first, last);
  }

  // Blocks of the loop to which no way is left where the condition has its first (or second)
  // outcome. They go at once: analyses take unreachable branches for branches.
  void find_dead(bool first) {
    std::vector<bool>& dead = dead_[first ? 0 : 1];
    dead.assign(blocks_.size(), true);
    std::vector<std::uint32_t> ahead{header_};
    if (!first && !plan_.decided) ahead.push_back(test_.stays);
    const auto go = [&](std::uint32_t block) {
      if (!contains(block) || !dead[place_of(block)]) return;
      dead[place_of(block)] = false;
      ahead.push_back(block);
    };
    std::vector<std::uint32_t> entries;
    entries.swap(ahead);
    for (const std::uint32_t entry : entries) go(entry);
    while (!ahead.empty()) {
      const std::uint32_t block = ahead.back();
      ahead.pop_back();
      const std::uint32_t last = cfg_.blocks()[block].terminator;
      const auto [from, to] =
          last == kNone ? std::pair(decisions_.cend(), decisions_.cend()) : decisions(last);
      if (from == to) {
        for (const std::uint32_t next : cfg_.successors(block)) go(next);
      } else if (from->outcome_in_first != first) {
        go(block + 1);
      } else {
        const auto successors = cfg_.successors(block);
        const bool jumps = function_.body[last].is(Op::bra);
        for (const std::uint32_t next : successors) {
          go(next);
          if (jumps) break;
        }
      }
    }
  }
  bool is_dead(std::uint32_t block, bool first) const {
    return dead_[first ? 0 : 1][place_of(block)];
  }

  // The rewrite of a statement for the first (or second) outcome of the condition: constants for
  // predicates that are still read, the statement itself, changed or not, or nothing.
  struct RewriteAction {
    std::vector<Instruction> replacements;  // of a setp
    bool erase = false, unguarded = false;
  };
  RewriteAction action_for(std::uint32_t statement, bool first) {
    RewriteAction result;
    if (is_dead(cfg_.block_of(statement), first)) {
      result.erase = function_.body[statement].kind == StatementKind::Instruction;
      return result;
    }
    const auto [from, to] = decisions(statement);
    for (auto d = from; d != to; ++d) {
      const bool holds = d->outcome_in_first == first;
      if (!d->writes) {
        (holds ? result.unguarded : result.erase) = true;
        continue;
      }
      result.erase = true;
      if (d->kept) {
        result.replacements.push_back(edits_.make(
            Op::mov, {Modifier::type_pred},
            {Operand::reg(facts_.index()[d->reg]), Operand::integer(holds ? -1 : 0)}, statement));
      }
    }
    return result;
  }

  // ---- the original loop: the second one

  void in_place(bool first) {
    for (const std::uint32_t block : blocks_) {
      for (std::uint32_t i = cfg_.blocks()[block].first; i < cfg_.blocks()[block].end; ++i) {
        const RewriteAction action = action_for(i, first);
        for (const Instruction& statement : action.replacements) edits_.insert_before(i, statement);
        if (action.erase) {
          edits_.erase(i);
          continue;
        }
        const bool back = !plan_.decided && leads_to_header(i);
        if (!action.unguarded && !back) continue;
        Instruction changed = edits_.copy(function_.body[i]);
        if (action.unguarded) changed.guard = {};
        if (back) relabel(changed, header_labels_, second_);
        edits_.replace(i, changed);
      }
      if (plan_.decided) continue;
      // The loop must not fall through into the first loop.
      if (block + 1 == header_ && block_falls(block, first)) {
        edits_.insert_before(cfg_.blocks()[header_].first, jump(second_));
      }
    }
  }
  bool block_falls(std::uint32_t block, bool first) {
    const std::uint32_t last = cfg_.blocks()[block].terminator;
    if (is_dead(block, first)) return false;
    if (last == kNone) return true;
    const RewriteAction action = action_for(last, first);
    if (action.erase) return true;
    Instruction s = function_.body[last];
    if (action.unguarded) s.guard = {};
    return falls_through(s);
  }
  bool leads_to_header(std::uint32_t i) const {
    const Instruction& s = function_.body[i];
    if (s.kind != StatementKind::Instruction || s.op != Op::bra) return false;
    const Operand& to = function_.operands_of(s)[0];
    return std::find(header_labels_.begin(), header_labels_.end(), to.id) != header_labels_.end();
  }
  void relabel(Instruction& s, const std::vector<std::uint32_t>& from, LabelId to) {
    for (Operand& o : function_.operands_of(s)) {
      if (o.kind == OperandKind::Label && std::find(from.begin(), from.end(), o.id) != from.end()) {
        o.id = to.value;
      }
    }
  }
  Instruction jump(LabelId to) {
    const Operand operands[] = {Operand::label(to)};
    return edits_.make(Op::bra, std::span<const Modifier>{}, operands, like());
  }
  // To a block outside the loop.
  Instruction go_to(std::uint32_t block) {
    if (block != cfg_.exit()) return jump(label_of(block));
    return edits_.make(Op::ret, std::span<const Modifier>{}, std::span<const Operand>{}, like());
  }
  Instruction jump_if(ptx::Register p, bool negated, LabelId to) {
    Instruction s = jump(to);
    s.guard = {p, negated};
    return s;
  }

  // ---- in front of it

  // The first loop is placed after the labels of the header: entries of the loop reach it.
  void find_entry() {
    const Block& header = cfg_.blocks()[header_];
    at_ = header.first;
    while (at_ < header.end && function_.body[at_].kind == StatementKind::Label) {
      header_labels_.push_back(function_.operands_of(function_.body[at_])[0].id);
      ++at_;
    }
    scope_ = scopes_.of(header.first);
  }

  Operand term(const LoopTerm& t) const {
    if (t.constant()) {
      const std::uint64_t sign = std::uint64_t{1} << (variable_.bits - 1);
      return Operand::integer(static_cast<std::int64_t>((t.value ^ sign) - sign));
    }
    return Operand::reg(facts_.index()[facts_.versions()[t.version].reg]);
  }
  Type type() const {
    const SplitFront front(edits_, at_, variable_.bits, like());
    return plan_.condition.is_signed ? front.signed_type() : front.unsigned_type();
  }
  Op setp() const { return plan_.condition.is_signed ? Op::setp_signed : Op::setp_unsigned; }
  Operand start_register() const {
    return Operand::reg(facts_.index()[facts_.versions()[variable_.phi].reg]);
  }

  // The bound of the tested value in the first loop.
  SplitFront::Number first_bound(SplitFront& front) {
    const LoopComparison& goes_on = *test_.goes_on;
    const Relation relation = variable_.down() ? mirrored(goes_on.relation) : goes_on.relation;
    const bool at_most = goes_on.relation != Relation::Ne && relation == Relation::Le;
    const SplitFront::Number bound = front.number(term(goes_on.bound));
    const SplitFront::Number limit = front.number(term(plan_.condition.bound));
    const std::uint64_t key = order_.key();
    const bool by_step = !plan_.after_test && !goes_on.value.is_next && !variable_.step.constant();
    const std::int64_t distance = by_step ? 0 : this->distance();
    if (!by_step && distance == 0 && plan_.strict && !at_most &&
        !(bound.constant && limit.constant)) {
      return front.result(variable_.down() ? Op::max : Op::min, type(), bound, limit);
    }
    const SplitFront::Number b = front.xor_(bound, key);
    const SplitFront::Number s = below(front, front.xor_(limit, key), distance, by_step);
    const SplitFront::Number both =
        at_most ? front.choose(s, Modifier::le, b, s, front.add(b, front.number(1)))
                : front.min(b, s);
    return front.xor_(both, key);
  }

  // How far what the condition compares is ahead of what the test before it compares.
  std::int64_t distance() const {
    const std::uint64_t sign = std::uint64_t{1} << (variable_.bits - 1);
    const auto number = [&](std::uint64_t raw) {
      return static_cast<std::int64_t>(((raw & order_.mask()) ^ sign) - sign);
    };
    const std::int64_t step = variable_.step.constant() ? number(variable_.step.value) : 0;
    std::int64_t ahead = number(plan_.condition.value.offset);
    if (!plan_.after_test) ahead += step;
    if (test_.goes_on->value.is_next) ahead -= step;
    return variable_.down() ? -ahead : ahead;
  }

  // The least number that the tested value must stay below for the condition to have its first
  // outcome: value + distance < limit, or <=. Saturates at the ends of the type.
  SplitFront::Number below(SplitFront& front, const SplitFront::Number& limit,
                           std::int64_t distance, bool by_step) {
    const std::uint64_t mask = order_.mask();
    if (by_step) {
      const SplitFront::Number step = front.number(term(variable_.step));
      const SplitFront::Number smallest = front.sub(front.max(limit, step), step);
      if (plan_.strict) return smallest;
      const SplitFront::Number one = front.number(1);
      const SplitFront::Number next = front.add(front.min(smallest, front.number(mask - 1)), one);
      return front.choose(limit, Modifier::ge, step, next, front.number(0));
    }
    bool strict = plan_.strict;
    if (!strict && distance > 0) {
      --distance;
      strict = true;
    }
    if (distance > 0) {
      const SplitFront::Number ahead = front.number(static_cast<std::uint64_t>(distance));
      return front.sub(front.max(limit, ahead), ahead);
    }
    const std::uint64_t after = static_cast<std::uint64_t>(-distance) + (strict ? 0 : 1);
    if (after == 0) return limit;
    return front.add(front.min(limit, front.number(mask - after)), front.number(after));
  }

  // A first iteration whose condition already has its second outcome belongs to the second loop.
  void enter_second(SplitFront& front) {
    const LoopComparison& c = plan_.condition;
    SplitFront::Number value = front.number(start_register());
    value = front.add(value, front.number(c.value.offset));
    const ptx::Register p =
        front.compare(setp(), type(), modifier(c.relation), value, front.number(term(c.bound)));
    front.put(jump_if(p, plan_.compares[0].first, second_));
  }

  // Where the bound is beyond the guard, the loop runs as it was.
  void enter_guarded(SplitFront& front) {
    const ptx::Register beyond =
        front.compare(setp(), type(), variable_.down() ? Modifier::lt : Modifier::gt,
                      front.number(term(test_.goes_on->bound)), front.number(*plan_.guard));
    front.put(jump_if(beyond, false, second_));
  }

  // ---- the first loop: a copy

  void copy(SplitFront& front, const SplitFront::Number& bound) {
    name_scopes();
    name_labels();
    if (blocks_.front() != header_) front.put(jump(copied_label(header_)));
    for (std::size_t n = 0; n < blocks_.size(); ++n) {
      const std::uint32_t block = blocks_[n];
      if (const auto label = block_label_[n]; label.value != kNone) {
        front.put(edits_.place(label, cfg_.blocks()[block].first));
      }
      bool falls = true;
      for (std::uint32_t i = cfg_.blocks()[block].first; i < cfg_.blocks()[block].end; ++i) {
        falls = copy_statement(front, block, i, bound);
      }
      if (!falls || is_dead(block, true)) continue;
      const std::uint32_t next = block + 1;
      if (n + 1 < blocks_.size() && blocks_[n + 1] == next) continue;
      front.put(go_to(next));
    }
    if (later_) {
      front.put(edits_.place(*later_, like()));
      leave_first(front);
    }
  }

  // True if control falls through to the next statement.
  bool copy_statement(SplitFront& front, std::uint32_t block, std::uint32_t i,
                      const SplitFront::Number& bound) {
    const Instruction& s = function_.body[i];
    if (!plan_.guard && !is_dead(block, true)) {
      if (i == test_.goes_on->statement) compare_first(front, bound);
      if (i == test_.branch) return copy_test(front);
      if (drops_chain(i)) return true;
    }
    const RewriteAction action = action_for(i, true);
    for (const Instruction& inserted : action.replacements) front.put(renamed(inserted));
    if (action.erase) return true;
    if (s.kind == StatementKind::Label) {
      // Labels at the start of the header are the entry of the loop.
      if (block == header_ && i < at_) return true;
      front.put(edits_.place({mapped_label(function_.operands_of(s)[0].id)}, i));
      return true;
    }
    Instruction copy = edits_.copy(s);
    if (action.unguarded) copy.guard = {};
    copy = renamed(copy);
    if (s.is(Op::brx_idx)) copy_table(front, copy);
    front.put(copy);
    return i + 1 < cfg_.blocks()[block].end || falls_through(copy);
  }

  // The test of the first loop, beside the one that it replaces.
  void compare_first(SplitFront& front, const SplitFront::Number& bound) {
    const Instruction& old = function_.body[test_.goes_on->statement];
    const Operand value = function_.operands_of(old)[test_.goes_on->operand];
    more_ = edits_.new_register(Type::pred);
    const Operand operands[] = {Operand::reg(more_), mapped(value), front.operand(bound)};
    const Modifier modifiers[] = {variable_.down() ? Modifier::gt : Modifier::lt,
                                  ptx::as_modifier(type())};
    front.put(edits_.make(setp(), modifiers, operands, test_.goes_on->statement));
  }

  bool copy_test(SplitFront& front) {
    const Instruction& old = function_.body[test_.branch];
    const std::uint32_t taken = cfg_.successors(test_.block)[0];
    Instruction copy = edits_.copy(old);
    if (taken == test_.stays) {
      copy.guard = {more_, false};
      function_.operands_of(copy)[0] = Operand::label(copied_label(test_.stays));
      front.put(copy);
      leave_first(front);
      return false;
    }
    later_ = edits_.new_label(scope_);
    copy.guard = {more_, true};
    function_.operands_of(copy)[0] = Operand::label(*later_);
    front.put(copy);
    return true;
  }

  // After the first loop: the original test decides whether the second one follows.
  void leave_first(SplitFront& front) {
    const LabelId stays = test_.stays == header_ ? second_ : label_of(test_.stays);
    if (keeps_test()) {
      Instruction again = jump(stays);
      again.guard = function_.body[test_.branch].guard;
      again.guard.predicate.decl.value = mapped_id(decls_, again.guard.predicate.decl.value);
      if (cfg_.successors(test_.block)[0] != test_.stays) again.guard.negated ^= true;
      front.put(again);
    } else {
      const LoopComparison& goes_on = *test_.goes_on;
      const Instruction& old = function_.body[goes_on.statement];
      const auto operands = function_.operands_of(old);
      const std::size_t last = operands.size() - 1;
      const Operand limit = operands[goes_on.operand == last ? last - 1 : last];
      Operand value = operands[goes_on.operand];
      if (!holds_still(value)) value = stepped_back(front, value);
      const ptx::Register p = edits_.new_register(Type::pred);
      const Modifier modifiers[] = {modifier(goes_on.relation), ptx::as_modifier(old.type())};
      const Operand all[] = {Operand::reg(p), mapped(value), mapped(limit)};
      front.put(edits_.make(old.op, modifiers, all, goes_on.statement));
      front.put(jump_if(p, false, stays));
    }
    front.put(go_to(test_.leaves));
  }

  // Whether a register holds at the branch what the comparison read.
  bool holds_still(const Operand& o) const {
    if (o.kind != OperandKind::Register) return true;
    const std::uint32_t reg = facts_.index().find(o.as_register());
    const std::uint32_t read = facts_.versions().read(test_.goes_on->statement, reg);
    return facts_.versions().before(test_.branch, reg) == read;
  }
  // The variable's own register holds what the next iteration begins with: a step back is what the
  // comparison read.
  bool can_step_back() const {
    const std::uint32_t reg = facts_.versions()[variable_.phi].reg;
    // The next value is no other case: that is the variable plus a constant, which is not 0, since
    // loops with another step are split only if they test before it.
    return test_.goes_on->value.offset == 0 &&
           facts_.versions().before(test_.branch, reg) == variable_.next &&
           scopes_.visible(facts_.index()[reg], test_.branch);
  }
  Operand stepped_back(SplitFront& front, const Operand&) {
    const SplitFront::Number next = front.number(start_register());
    const SplitFront::Number step = front.number(term(variable_.step));
    return front.operand(front.sub(next, step));
  }

  // Whether the first loop must compute the old test too: for others that read it, or because the
  // registers that it compares have changed until the branch.
  bool keeps_test() const {
    if (!keeps_) {
      const LoopComparison& goes_on = *test_.goes_on;
      const auto operands = function_.operands_of(function_.body[goes_on.statement]);
      const std::size_t last = operands.size() - 1;
      const bool value = holds_still(operands[goes_on.operand]) || can_step_back();
      const bool limit = holds_still(operands[goes_on.operand == last ? last - 1 : last]);
      keeps_ = !value || !limit || !only_for_branch();
    }
    return *keeps_;
  }
  // The comparison and the copies and negations of its outcome serve the branch and nothing else.
  bool only_for_branch() const {
    const auto outcomes = outcomes_of(facts_, plan_.loop, test_.goes_on->statement);
    if (std::any_of(outcomes.begin(), outcomes.end(),
                    [](const SplitOutcome& o) { return o.kept; })) {
      return false;
    }
    const auto uses = uses_of(facts_, plan_.loop, outcomes);
    return std::all_of(uses.begin(), uses.end(),
                       [&](const SplitUse& use) { return use.statement == test_.branch; });
  }
  bool drops_chain(std::uint32_t i) const {
    if (keeps_test()) return false;
    if (!chain_) {
      chain_.emplace();
      for (const SplitOutcome& o : outcomes_of(facts_, plan_.loop, test_.goes_on->statement)) {
        chain_->push_back(o.statement);
      }
    }
    return std::find(chain_->begin(), chain_->end(), i) != chain_->end();
  }

  // ---- names in the copy

  bool contains(std::uint32_t block) const { return cfg_.loops().contains(plan_.loop, block); }
  std::size_t place_of(std::uint32_t block) const {
    return static_cast<std::size_t>(std::lower_bound(blocks_.begin(), blocks_.end(), block) -
                                    blocks_.begin());
  }

  void name_labels() {
    block_label_.assign(blocks_.size(), LabelId{});
    copied_label(header_);
    if (!plan_.guard && cfg_.successors(test_.block)[0] == test_.stays) copied_label(test_.stays);
    for (std::size_t n = 0; n < blocks_.size(); ++n) {
      const Block& block = cfg_.blocks()[blocks_[n]];
      for (std::uint32_t i = block.first; i < block.end; ++i) {
        const Instruction& s = function_.body[i];
        if (s.kind != StatementKind::Label && !is_table(s.kind)) continue;
        const std::uint32_t old = function_.operands_of(s)[0].id;
        if (blocks_[n] == header_ && i < at_) {
          labels_.push_back({old, copied_label(header_).value});
          continue;
        }
        labels_.push_back({old, kNone});
      }
    }
    std::sort(labels_.begin(), labels_.end());
  }
  // The new name of a label of the loop; others keep theirs.
  std::uint32_t mapped_label(std::uint32_t old) {
    const auto found =
        std::lower_bound(labels_.begin(), labels_.end(), std::pair(old, std::uint32_t{0}));
    if (found == labels_.end() || found->first != old) return old;
    if (found->second == kNone) {
      const std::uint32_t scope = mapped_scope(function_.labels[old].scope);
      found->second = edits_.new_label(scope).value;
      function_.labels[found->second].defined = true;
    }
    return found->second;
  }
  // The label of a block's copy. All are named before the first is placed.
  LabelId copied_label(std::uint32_t block) {
    LabelId& label = block_label_[place_of(block)];
    if (label.value == kNone) label = edits_.new_label(scope_);
    return label;
  }
  // A label at the start of an original block.
  LabelId label_of(std::uint32_t block) {
    const Block& b = cfg_.blocks()[block];
    if (b.label.value != kNone) return b.label;
    const LabelId label = edits_.new_label(scope_before(b.first));
    edits_.insert_before(b.first, edits_.place(label, b.first));
    return label;
  }

  // The scope of a statement inserted before another one.
  std::uint32_t scope_before(std::uint32_t statement) const {
    if (function_.body[statement].kind != StatementKind::ScopeBegin) return scopes_.of(statement);
    std::uint32_t closed = 0;
    while (statement-- > 0) {
      const StatementKind kind = function_.body[statement].kind;
      if (kind == StatementKind::ScopeEnd) {
        ++closed;
      } else if (closed == 0) {
        return scopes_.of(statement);
      } else if (kind == StatementKind::ScopeBegin) {
        --closed;
      }
    }
    return 0;
  }

  void name_scopes() {
    for (const std::uint32_t block : blocks_) {
      for (std::uint32_t i = cfg_.blocks()[block].first; i < cfg_.blocks()[block].end; ++i) {
        const Instruction& s = function_.body[i];
        if (s.kind == StatementKind::ScopeBegin) {
          scopes_map_.push_back({s.scope, function_.scopes++});
        }
      }
    }
    if (scopes_map_.empty()) return;
    std::sort(scopes_map_.begin(), scopes_map_.end());
    const auto declarations = static_cast<std::uint32_t>(function_.registers.size());
    for (std::uint32_t d = 0; d < declarations; ++d) {
      ptx::RegisterDecl decl = function_.registers[d];
      const std::uint32_t scope = mapped_scope(decl.scope);
      if (scope == decl.scope) continue;
      decl.scope = scope;
      decls_.push_back({d, static_cast<std::uint32_t>(function_.registers.size())});
      function_.registers.push_back(decl);
    }
  }
  std::uint32_t mapped_scope(std::uint32_t scope) const {
    const auto found = std::lower_bound(scopes_map_.begin(), scopes_map_.end(),
                                        std::pair(scope, std::uint32_t{0}));
    return found != scopes_map_.end() && found->first == scope ? found->second : scope;
  }
  static std::uint32_t mapped_id(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs,
                                 std::uint32_t id) {
    const auto found =
        std::lower_bound(pairs.begin(), pairs.end(), std::pair(id, std::uint32_t{0}));
    return found != pairs.end() && found->first == id ? found->second : id;
  }

  std::uint32_t mapped_symbol(std::uint32_t id) const {
    const auto found = symbols_.find(id);
    return found == symbols_.end() ? id : found->second;
  }

  Operand mapped(Operand o) {
    switch (o.kind) {
      case OperandKind::Label:
        o.id = mapped_label(o.id);
        break;
      case OperandKind::Register:
        o.id = mapped_id(decls_, o.id);
        break;
      case OperandKind::Symbol:
        o.id = mapped_symbol(o.id);
        break;
      case OperandKind::Memory:
        if (o.base == OperandKind::Register) o.id = mapped_id(decls_, o.id);
        if (o.base == OperandKind::Symbol) o.id = mapped_symbol(o.id);
        break;
      default:
        break;
    }
    return o;
  }
  // Renames the operands of a statement of the copy.
  Instruction renamed(Instruction s) {
    if (s.kind == StatementKind::ScopeBegin) s.scope = mapped_scope(s.scope);
    if (s.kind == StatementKind::Variable) s.variable = copied_variable(s.variable);
    if (s.guard.present())
      s.guard.predicate.decl.value = mapped_id(decls_, s.guard.predicate.decl.value);
    for (std::uint32_t n = 0; n < s.operand_count; ++n) {
      const Operand o = mapped(function_.operands[s.first_operand + n]);
      function_.operands[s.first_operand + n] = o;
      if (o.kind != OperandKind::Vector && o.kind != OperandKind::List) continue;
      for (std::uint32_t e = 0; e < o.index; ++e) {
        function_.operands[o.id + e] = mapped(function_.operands[o.id + e]);
      }
    }
    return s;
  }
  // Parameters of calls are declared in braces of their own.
  std::uint32_t copied_variable(std::uint32_t old) {
    ptx::Variable variable = function_.variables[old];
    variable.scope = mapped_scope(variable.scope);
    const auto index = static_cast<std::uint32_t>(function_.variables.size());
    function_.variables.push_back(variable);
    const auto owner = static_cast<std::uint32_t>(&function_ - module_.functions.data());
    if (symbols_of_.empty()) {
      for (std::uint32_t i = 0; i < module_.symbols.size(); ++i) {
        const ptx::Symbol& symbol = module_.symbols[i];
        if (symbol.kind == ptx::SymbolKind::FunctionVariable && symbol.function == owner) {
          symbols_of_.push_back({symbol.index, i});
        }
      }
      std::sort(symbols_of_.begin(), symbols_of_.end());
    }
    auto known =
        std::lower_bound(symbols_of_.begin(), symbols_of_.end(), std::pair(old, std::uint32_t{0}));
    for (; known != symbols_of_.end() && known->first == old; ++known) {
      const ptx::Symbol symbol = module_.symbols[known->second];
      symbols_[known->second] = static_cast<std::uint32_t>(module_.symbols.size());
      module_.symbols.push_back({symbol.name, symbol.kind, owner, index});
    }
    return index;
  }
  // A table outside the loop names the labels of the second one.
  void copy_table(SplitFront& front, Instruction& brx) {
    Operand& table = function_.operands_of(brx)[1];
    const std::uint32_t name = table.id;
    const auto found =
        std::find_if(function_.body.begin(), function_.body.end(), [&](const Instruction& s) {
          return s.kind == StatementKind::BranchTargets && function_.operands_of(s)[0].id == name;
        });
    if (found == function_.body.end()) return;
    const auto place = static_cast<std::uint32_t>(found - function_.body.begin());
    if (contains(cfg_.block_of(place))) return;
    Instruction copied = edits_.copy(*found);
    const LabelId label = edits_.new_label(scope_);
    function_.labels[label.value].defined = true;
    copied = renamed(copied);
    function_.operands_of(copied)[0] = Operand::label(label);
    function_.operands_of(brx)[1].id = label.value;
    front.put(copied);
  }

  ptx::Module& module_;
  Function& function_;
  analysis::Facts& facts_;
  const analysis::Cfg& cfg_;
  const Scopes& scopes_;
  Edits& edits_;
  const SplitPlan& plan_;
  const LoopTest& test_;
  const Induction& variable_;
  Ordinal order_;
  std::vector<std::uint32_t> blocks_;
  std::uint32_t header_;
  std::vector<Decision> decisions_;
  std::vector<bool> dead_[2];  // by place in blocks_, for the first and the second outcome
  std::uint32_t at_ = 0, scope_ = 0;
  std::vector<std::uint32_t> header_labels_;
  LabelId second_;
  ptx::Register more_;
  std::optional<LabelId> later_;
  mutable std::optional<bool> keeps_;
  mutable std::optional<std::vector<std::uint32_t>> chain_;
  std::vector<LabelId> block_label_;
  using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  Pairs labels_, scopes_map_, decls_, symbols_of_;
  std::map<std::uint32_t, std::uint32_t> symbols_;
};

}  // namespace

void split(ptx::Module& module, Function& function, analysis::Facts& facts, const Scopes& scopes,
           Edits& edits, const SplitPlan& plan) {
  Splitter(module, function, facts, scopes, edits, plan).run();
}

}  // namespace ptxgen::inline v0::optimize
