// src/optimize/loop_split/find.cpp - finds conditions that split a loop
#include <algorithm>

#include "analysis/ordinal.hpp"
#include "analysis/uniformity_sources.hpp"
#include "optimize/loop_split/loop_split.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::optimize {

using analysis::Agreement;
using analysis::Induction;
using analysis::Inductions;
using analysis::kNoNode;
using analysis::LoopComparison;
using analysis::LoopTerm;
using analysis::LoopTest;
using analysis::Ordinal;
using analysis::Relation;
using analysis::Version;
using ptx::Instruction;
using ptx::kNone;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;

namespace {

constexpr std::size_t kMaxOutcomes = 64;
// Writes checked before uniformity is queried.
constexpr int kMaxWritesFollowed = 16;

bool is_integer_setp(const Instruction& s) {
  return s.is(Op::setp_unsigned) || s.is(Op::setp_signed) || s.is(Op::setp_bits);
}

std::string number(std::uint64_t value, unsigned bits) {
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  return std::to_string(static_cast<std::int64_t>((value ^ sign) - sign));
}

}  // namespace

std::vector<SplitOutcome> outcomes_of(analysis::Facts& facts, std::uint32_t loop,
                                      std::uint32_t statement) {
  const ptx::Function& function = facts.function();
  const analysis::Versions& versions = facts.versions();
  std::vector<SplitOutcome> found;
  const auto add = [&](std::uint32_t writer, const Operand& to, bool negated) {
    if (to.kind != OperandKind::Register) return;
    const std::uint32_t reg = facts.index().find(to.as_register());
    const std::uint32_t version = reg == kNone ? kNone : versions.written(writer, reg);
    if (version == kNone) return;
    found.push_back({version, writer, negated, versions[version].partial});
  };
  const auto operands = function.operands_of(function.body[statement]);
  add(statement, operands[0], false);
  if (operands.size() == 4) add(statement, operands[1], true);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const SplitOutcome from = found[i];
    for (const analysis::VersionUse& use : versions.uses(from.version)) {
      if (use.statement == kNone) {
        found[i].kept = true;  // ways meet, or something is written over it in part
        continue;
      }
      if (!facts.cfg().loops().contains(loop, facts.cfg().block_of(use.statement))) {
        found[i].kept = true;
        continue;
      }
      const Instruction& reader = function.body[use.statement];
      const bool guards = reader.guard.present() &&
                          facts.index().find(reader.guard.predicate) == versions[from.version].reg;
      bool reads = false;
      analysis::for_each_access(function, reader, [&](const analysis::RegisterAccess& a) {
        const bool other = !a.write && a.operand != analysis::kGuardPosition;
        if (other && facts.index().find(a.reg) == versions[from.version].reg) reads = true;
      });
      if (!reads) continue;
      const bool copy = reader.is(Op::not_) || reader.is(Op::mov);
      const auto all = function.operands_of(reader);
      if (copy && !guards && !reader.guard.present() && !all[1].negated &&
          found.size() < kMaxOutcomes) {
        add(use.statement, all[0], from.negated != reader.is(Op::not_));
      } else {
        found[i].kept = true;
      }
    }
  }
  return found;
}

std::vector<SplitUse> uses_of(analysis::Facts& facts, std::uint32_t loop,
                              const std::vector<SplitOutcome>& outcomes) {
  const ptx::Function& function = facts.function();
  std::vector<SplitUse> found;
  for (const SplitOutcome& outcome : outcomes) {
    const std::uint32_t reg = facts.versions()[outcome.version].reg;
    for (const analysis::VersionUse& use : facts.versions().uses(outcome.version)) {
      if (use.statement == kNone) continue;
      if (!facts.cfg().loops().contains(loop, facts.cfg().block_of(use.statement))) continue;
      const Instruction& reader = function.body[use.statement];
      const bool writes_outcome =
          std::any_of(outcomes.begin(), outcomes.end(),
                      [&](const SplitOutcome& o) { return o.statement == use.statement; });
      if (writes_outcome) continue;
      const bool guard =
          reader.guard.present() && facts.index().find(reader.guard.predicate) == reg;
      found.push_back({use.statement, guard, outcome.negated != (guard && reader.guard.negated)});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const SplitUse& a, const SplitUse& b) { return a.statement < b.statement; });
  return found;
}

// One comparison: the conditions one after the other, each with its own reason.
class SplitCheck {
 public:
  SplitCheck(SplitFinder& finder, std::uint32_t statement, SplitPlan& plan, SplitRefusal& refusal)
      : finder_(finder),
        facts_(finder.facts_),
        function_(facts_.function()),
        inductions_(facts_.inductions()),
        statement_(statement),
        plan_(plan),
        refusal_(refusal) {}

  // False if there is nothing to report.
  bool look() {
    const auto& forest = facts_.cfg().loops();
    const std::uint32_t block = facts_.cfg().block_of(statement_);
    const std::uint32_t innermost = forest.innermost(block);
    if (innermost == kNoNode || !decides(innermost)) return false;
    if (forest.loops()[innermost].irreducible) {
      refuse("irreducible",
             "the loop is entered at more than one place, so no register has one value at its "
             "start: give it one entry");
      return true;
    }
    for (std::uint32_t loop = innermost; loop != kNoNode; loop = forest.loops()[loop].parent) {
      const auto comparison = inductions_.comparison(loop, statement_);
      if (!comparison) continue;
      plan_.loop = loop;
      plan_.condition = *comparison;
      plan_.compares = {{statement_, false}};
      check();
      return true;
    }
    if (const std::uint32_t loop = sum_of_variable(innermost); loop != kNoNode) {
      plan_.loop = loop;
      refuse_sum();
      return true;
    }
    refuse("not-an-induction-variable",
           format_text(
               "neither side of '{}' is a register that the loop changes by the same step in every "
               "iteration: only such a condition changes once",
               text()));
    return true;
  }

 private:
  void refuse(std::string_view reason, std::string message) {
    refusal_.reason = reason;
    refusal_.message = std::move(message);
  }

  // The comparison with the names of its operands.
  std::string text() const {
    const Instruction& setp = function_.body[statement_];
    const auto operands = function_.operands_of(setp);
    std::string result = operand_text(operands[operands.size() - 2]) + " ";
    result += ptx::name(setp.get(ptx::Field::Comparison));
    return result + " " + operand_text(operands[operands.size() - 1]);
  }
  std::string operand_text(const Operand& o) const {
    if (o.kind == OperandKind::Register) {
      return ptx::name_of(facts_.module(), function_, o.as_register());
    }
    if (o.kind == OperandKind::Integer) {
      return number(o.value, ptx::bits(function_.body[statement_].type()));
    }
    return "its operand";
  }
  std::string value_text() const {
    const auto operands = function_.operands_of(function_.body[statement_]);
    return operand_text(operands[plan_.condition.operand]);
  }
  std::string bound_text() const {
    const auto operands = function_.operands_of(function_.body[statement_]);
    const std::size_t last = operands.size() - 1;
    return operand_text(operands[plan_.condition.operand == last ? last - 1 : last]);
  }

  // Whether the outcome decides something besides leaving a loop.
  bool decides(std::uint32_t loop) const {
    const auto outcomes = outcomes_of(facts_, loop, statement_);
    const auto uses = uses_of(facts_, loop, outcomes);
    return std::any_of(uses.begin(), uses.end(), [&](const SplitUse& use) {
      return !leaves_loop(use.statement) && !chooses_loop(use.statement);
    });
  }
  bool leaves_loop(std::uint32_t statement) const {
    const analysis::Cfg& cfg = facts_.cfg();
    const std::uint32_t block = cfg.block_of(statement);
    const std::uint32_t loop = cfg.loops().innermost(block);
    if (cfg.blocks()[block].terminator != statement || loop == kNoNode) return false;
    const auto successors = cfg.successors(block);
    return std::any_of(successors.begin(), successors.end(),
                       [&](std::uint32_t next) { return !cfg.loops().contains(loop, next); });
  }

  // A branch straight to the start of another loop only chooses where that loop begins, as the one
  // does that a split puts in front of its two loops.
  bool chooses_loop(std::uint32_t statement) const {
    const analysis::Cfg& cfg = facts_.cfg();
    const std::uint32_t block = cfg.block_of(statement);
    if (cfg.blocks()[block].terminator != statement) return false;
    const std::uint32_t to = cfg.successors(block)[0];
    const std::uint32_t loop = to == cfg.exit() ? kNoNode : cfg.loops().innermost(to);
    return loop != kNoNode && cfg.loops().loops()[loop].header == to &&
           !cfg.loops().contains(loop, block);
  }

  // The loop with a variable that one side is, plus something else: row0 + tid.
  std::uint32_t sum_of_variable(std::uint32_t innermost) const {
    const auto& forest = facts_.cfg().loops();
    const auto operands = function_.operands_of(function_.body[statement_]);
    for (std::size_t n = operands.size() - 2; n < operands.size(); ++n) {
      if (operands[n].kind != OperandKind::Register) continue;
      const std::uint32_t reg = facts_.index().find(operands[n].as_register());
      const std::uint32_t version = facts_.versions().read(statement_, reg);
      if (version == kNone) continue;
      for (std::uint32_t loop = innermost; loop != kNoNode; loop = forest.loops()[loop].parent) {
        if (adds_variable(loop, version)) return loop;
      }
    }
    return kNoNode;
  }
  bool adds_variable(std::uint32_t loop, std::uint32_t version) const {
    const analysis::Versions& versions = facts_.versions();
    for (int depth = 0; depth < 4; ++depth) {
      version = inductions_.root(version);
      const Version& v = versions[version];
      if (v.kind != Version::Kind::Write || v.partial) return false;
      const Instruction& write = function_.body[v.statement];
      if (!write.is(Op::add) && !write.is(Op::sub)) return false;
      std::uint32_t sources[2] = {kNone, kNone};
      const auto operands = function_.operands_of(write);
      for (std::size_t n = 1; n < 3; ++n) {
        if (operands[n].kind != OperandKind::Register) continue;
        sources[n - 1] = versions.read(v.statement, facts_.index().find(operands[n].as_register()));
      }
      for (const std::uint32_t source : sources) {
        if (source != kNone && inductions_.value(loop, source)) return true;
      }
      version =
          sources[0] != kNone && !inductions_.invariant(loop, sources[0]) ? sources[0] : sources[1];
      if (version == kNone) return false;
    }
    return false;
  }
  void refuse_sum() {
    if (agreement() < needed()) {
      refuse_lanes();
      return;
    }
    refuse("may-wrap",
           format_text(
               "'{}' compares the sum of a loop's variable and another number, which may pass the "
               "end of its type: compare the variable itself with the difference, computed "
               "before the loop",
               text()));
  }

  Agreement agreement() const {
    if (of_lanes()) return Agreement::None;
    const auto operands = function_.operands_of(function_.body[statement_]);
    const auto of = [&](std::size_t n) {
      return analysis::agreement(facts_.module(), function_, facts_.index(), facts_.uniformity(),
                                 operands[n], facts_.options());
    };
    return std::min(of(operands.size() - 2), of(operands.size() - 1));
  }
  // Whether the few writes in front of the comparison show that it depends on what each lane has
  // of its own, as the bound of a block's work does: uniformity would say None, but it costs as
  // much as all else that is asked here.
  bool of_lanes() const {
    int budget = kMaxWritesFollowed;
    return of_lanes(statement_, budget);
  }
  bool of_lanes(std::uint32_t statement, int& budget) const {
    const Instruction& s = function_.body[statement];
    for (const Operand& o : function_.operands_of(s)) {
      if (o.kind == OperandKind::Special &&
          analysis::of_special(static_cast<ptx::SpecialRegister>(o.id), o.component,
                               analysis::block_shape(function_, facts_.options())) ==
              Agreement::None)
        return true;
    }
    for (const analysis::NumberedAccess& a : facts_.index().accesses(statement)) {
      if (a.write || a.operand == analysis::kGuardPosition) continue;
      const std::uint32_t version = facts_.versions().read(statement, a.reg);
      if (version == kNone || facts_.versions()[version].kind != analysis::Version::Kind::Write)
        continue;
      const std::uint32_t writer = facts_.versions()[version].statement;
      if (budget-- <= 0) return false;
      if (analysis::result_kind(facts_.module(), function_, function_.body[writer]) ==
              analysis::ResultKind::Computed &&
          of_lanes(writer, budget))
        return true;
    }
    return false;
  }
  // The required agreement: among the threads that synchronize in the loop.
  Agreement needed() const {
    auto& known = finder_.needed_;
    if (known.empty()) known.resize(facts_.cfg().loops().loops().size());
    if (!known[plan_.loop]) known[plan_.loop] = barriers();
    return *known[plan_.loop];
  }
  Agreement barriers() const {
    Agreement result = Agreement::Warp;
    const analysis::Cfg& cfg = facts_.cfg();
    for (const std::uint32_t block : cfg.loops().nodes(plan_.loop)) {
      for (std::uint32_t i = cfg.blocks()[block].first; i < cfg.blocks()[block].end; ++i) {
        const Instruction& s = function_.body[i];
        if (s.kind != ptx::StatementKind::Instruction || s.is(Op::bar_warp_sync)) continue;
        if (!ptx::has(ptx::info(s.op).flags, ptx::Flag::Barrier)) continue;
        const bool cluster = s.get(ptx::Field::Scope) == ptx::Modifier::cluster;
        result = std::max(result, cluster ? Agreement::Grid : Agreement::Block);
      }
    }
    return result;
  }
  void refuse_lanes() {
    if (!of_lanes() && facts_.uniformity().gave_up()) {
      refuse("uniformity-unknown",
             format_text(
                 "the uniformity analysis gave up on this function: a split requires that '{}' "
                 "is uniform in a warp",
                 text()));
      return;
    }
    if (agreement() == Agreement::None) {
      refuse("lane-dependent",
             format_text(
                 "'{}' depends on the thread: the threads of a warp would leave the first of two "
                 "loops at different iterations; compare what all threads agree on, and "
                 "leave the rest to a predicate",
                 text()));
      return;
    }
    refuse("lane-dependent",
           format_text(
               "the loop contains a barrier, and its threads may disagree about '{}': some would "
               "wait in the first of two loops, others in the second; compare a value that "
               "is uniform in the block",
               text()));
  }

  void check() {
    LoopComparison& c = plan_.condition;
    const Induction& variable = inductions_.of(plan_.loop)[c.value.variable];
    if (c.relation == Relation::Eq || c.relation == Relation::Ne) {
      refuse("equality-comparison",
             format_text("'{}' changes twice while the loop runs: only <, <=, > and >= split it",
                         text()));
      return;
    }
    if (!c.bound.known()) {
      refuse("bound-not-invariant", "the loop itself computes " + bound_text() + ", which " +
                                        value_text() +
                                        " is compared with: compute it before the loop");
      return;
    }
    if (facts_.versions()[outcome_version()].partial) {
      refuse("predicated-compare",
             "the comparison is guarded, so its predicate may be older than the iteration: compare "
             "without a guard");
      return;
    }
    if (agreement() < needed()) {
      refuse_lanes();
      return;
    }
    if (!find_test()) return;
    const LoopTest& test = inductions_.tests(plan_.loop)[plan_.test];
    if (test.goes_on->statement == statement_) {
      refuse("loop-test",
             format_text("'{}' is also the loop test: compare a second time for the condition",
                         text()));
      return;
    }
    if (!inductions_.wrap_excluded(plan_.loop, test, c.is_signed)) {
      if (find_guard(test, variable)) return;
      if (!variable.step.constant()) {
        refuse("step-unknown",
               format_text(
                   "the step of {} is not a constant, and its test does not exclude that a step "
                   "passes the end of the type: use a constant step",
                   value_text()));
      } else {
        refuse("may-wrap",
               format_text(
                   "{} may wrap around while the loop runs, and '{}' may then change more than "
                   "once: enter the loop only if its first value is within the bound, and "
                   "test before the step is added if the step is not 1",
                   value_text(), text()));
      }
      return;
    }
    if (!offset_fits(test, variable)) {
      refuse("may-wrap",
             format_text("{} is the loop's variable plus a constant, and may pass the end of its "
                         "type: compare the variable itself",
                         value_text()));
      return;
    }
    settle(test, variable);
  }

  // Whether a limit of the test's bound, looked at before the loop, lets a copy of it be split.
  bool find_guard(const LoopTest& test, const Induction& variable) {
    const auto limit = inductions_.wrap_limit(plan_.loop, test, plan_.condition.is_signed);
    if (!limit) return false;
    // Threads that synchronize in the loop must choose the same copy.
    const auto operands = function_.operands_of(function_.body[test.goes_on->statement]);
    const std::size_t last = operands.size() - 1;
    const Operand& bound = operands[test.goes_on->operand == last ? last - 1 : last];
    if (analysis::agreement(facts_.module(), function_, facts_.index(), facts_.uniformity(), bound,
                            facts_.options()) < needed()) {
      return false;
    }
    const Ordinal ord = order(variable);
    bound_limit_ = ord(*limit);
    if (!offset_fits(test, variable)) return false;
    const auto known = inductions_.range(plan_.loop, test.goes_on->bound, variable.bits,
                                         plan_.condition.is_signed);
    if (ord(ord.down ? known.max : known.min) > bound_limit_) {
      refuse("beyond-guard",
             format_text("the loop runs only if {} is beyond {}, and then {} may wrap around: this "
                         "copy of it keeps the condition",
                         operand_text(bound), number(*limit, variable.bits), value_text()));
      return true;
    }
    plan_.guard = limit;
    return true;
  }

  std::uint32_t outcome_version() const {
    const auto operands = function_.operands_of(function_.body[statement_]);
    for (const Operand& o : operands) {
      if (o.kind != OperandKind::Register) continue;
      const std::uint32_t reg = facts_.index().find(o.as_register());
      const std::uint32_t version = facts_.versions().written(statement_, reg);
      if (version != kNone) return version;
    }
    return 0;
  }

  // The test that bounds the variable.
  bool find_test() {
    const auto tests = inductions_.tests(plan_.loop);
    const LoopComparison& c = plan_.condition;
    bool other_sign = false;
    for (std::uint32_t n = 0; n < tests.size(); ++n) {
      const LoopTest& test = tests[n];
      if (!test.goes_on || !test.every_iteration) continue;
      if (test.goes_on->value.variable != c.value.variable) continue;
      if (facts_.cfg().loops().innermost(test.block) != plan_.loop) continue;
      // A loop that continues while its variable is beyond the bound ends by wrapping around, or at
      // once.
      const bool down = inductions_.of(plan_.loop)[c.value.variable].down();
      const Relation relation = down ? mirrored(test.goes_on->relation) : test.goes_on->relation;
      const bool equality = relation == Relation::Eq || relation == Relation::Ne;
      const bool bounds =
          relation == Relation::Lt || relation == Relation::Le || relation == Relation::Ne;
      if (!bounds) continue;
      if (!equality && test.goes_on->is_signed != c.is_signed) {
        other_sign = true;
        continue;
      }
      plan_.test = n;
      const std::uint32_t block = facts_.cfg().block_of(statement_);
      plan_.after_test = facts_.cfg().dominators().strictly_dominates(test.block, block);
      return true;
    }
    if (other_sign) {
      refuse("signedness-differs",
             format_text("'{}' is {} comparison, the loop test is {} one: use one type for both",
                         text(), c.is_signed ? "a signed" : "an unsigned",
                         c.is_signed ? "an unsigned" : "a signed"));
    } else {
      refuse(
          "no-test",
          format_text("no test of every iteration bounds {} by a loop invariant: end the loop by "
                      "comparing it with one",
                      value_text()));
    }
    return false;
  }

  Ordinal order(const Induction& variable) const {
    return {variable.bits, plan_.condition.is_signed, variable.down()};
  }

  // The range of ordinals at the start of iterations that evaluate the condition.
  void extremes(const LoopTest& test, const Induction& variable, std::uint64_t& smallest,
                std::uint64_t& greatest) const {
    const Ordinal ord = order(variable);
    const LoopComparison& goes_on = *test.goes_on;
    const bool is_signed = plan_.condition.is_signed;
    const auto ordered = [&](Inductions::Range r) {
      return ord.down ? Inductions::Range{ord(r.max), ord(r.min)}
                      : Inductions::Range{ord(r.min), ord(r.max)};
    };
    const auto start =
        ordered(inductions_.start_range(plan_.loop, goes_on.value.variable, is_signed));
    auto bound = ordered(inductions_.range(plan_.loop, goes_on.bound, variable.bits, is_signed));
    bound.max = std::min(bound.max, bound_limit_);
    smallest = start.min;
    greatest = ord.mask();
    if (!variable.step.constant()) return;
    const std::uint64_t step =
        (ord.down ? 0 - variable.step.value : variable.step.value) & ord.mask();
    if (variable.start.constant() && goes_on.bound.constant()) {
      const auto iterations = analysis::iteration_count(
          variable.start.value + goes_on.value.offset, variable.step.value, goes_on.relation,
          goes_on.bound.value, is_signed, variable.bits);
      if (iterations) {
        const std::uint64_t last =
            plan_.after_test && *iterations >= 2 ? *iterations - 2 : *iterations - 1;
        greatest = start.min + last * step;
        return;
      }
    }
    const bool at_most = goes_on.relation == Relation::Le || goes_on.relation == Relation::Ge;
    if (!at_most && bound.max == 0) return;
    std::uint64_t largest = at_most ? bound.max : bound.max - 1;
    if (!goes_on.value.is_next && !plan_.after_test) {
      if (largest > ord.mask() - step) return;
      largest += step;
    }
    greatest = largest;
    if (plan_.after_test) return;
    const Relation below = ord.down ? Relation::Gt : Relation::Lt;
    if (!inductions_.starts(plan_.loop, goes_on.value.variable, below, goes_on.bound, is_signed)) {
      greatest = std::max(greatest, start.max);
    }
  }

  // The constant that the condition adds to what the iteration began with, in the order of the
  // loop.
  std::int64_t offset(const Induction& variable) const {
    const std::uint64_t sign = std::uint64_t{1} << (variable.bits - 1);
    const std::uint64_t raw = plan_.condition.value.offset;
    const auto value = static_cast<std::int64_t>((raw ^ sign) - sign);
    return variable.down() ? -value : value;
  }

  bool offset_fits(const LoopTest& test, const Induction& variable) const {
    const analysis::InductionValue& value = plan_.condition.value;
    if (!variable.step.constant()) return !value.is_next && value.offset == 0;
    if (value.offset == 0) return true;
    const std::uint64_t sign = std::uint64_t{1} << (variable.bits - 1);
    if (value.offset == sign) return false;
    std::uint64_t smallest = 0, greatest = 0;
    extremes(test, variable, smallest, greatest);
    const std::int64_t c = offset(variable);
    if (c < 0) return smallest >= static_cast<std::uint64_t>(-c);
    return greatest <= order(variable).mask() - static_cast<std::uint64_t>(c);
  }

  // The first outcome, and whether it ever changes.
  void settle(const LoopTest& test, const Induction& variable) {
    const LoopComparison& c = plan_.condition;
    const bool down = variable.down();
    const Relation relation = down ? mirrored(c.relation) : c.relation;
    plan_.strict = relation == Relation::Lt || relation == Relation::Ge;
    plan_.compares[0].first = relation == Relation::Lt || relation == Relation::Le;
    if (!variable.step.constant()) return;
    std::uint64_t smallest = 0, greatest = 0;
    extremes(test, variable, smallest, greatest);
    const Ordinal ord = order(variable);
    const auto raw = inductions_.range(plan_.loop, c.bound, variable.bits, c.is_signed);
    const std::uint64_t low = down ? ord(raw.max) : ord(raw.min);
    const std::uint64_t high = down ? ord(raw.min) : ord(raw.max);
    const auto plus = static_cast<std::uint64_t>(offset(variable));
    const std::uint64_t first = (smallest + plus) & ord.mask();
    const std::uint64_t last = (greatest + plus) & ord.mask();
    if (plan_.strict ? last < low : last <= low) plan_.decided = plan_.outcome_is_first = true;
    if (plan_.strict ? first >= high : first > high) plan_.decided = true;
  }

  SplitFinder& finder_;
  analysis::Facts& facts_;
  const ptx::Function& function_;
  const Inductions& inductions_;
  std::uint32_t statement_;
  SplitPlan& plan_;
  SplitRefusal& refusal_;
  std::uint64_t bound_limit_ = ~std::uint64_t{0};  // ordinal that a guard keeps the bound within
};

bool SplitFinder::look(std::uint32_t statement, SplitPlan& plan, SplitRefusal& refusal) {
  const Instruction& s = facts_.function().body[statement];
  if (!is_integer_setp(s)) return false;
  if (!facts_.cfg().reachable(facts_.cfg().block_of(statement))) return false;
  plan = {};
  refusal = {};
  return SplitCheck(*this, statement, plan, refusal).look();
}

bool SplitFinder::same(const SplitPlan& a, const SplitPlan& b) const {
  const auto rooted = [&](LoopTerm term) {
    if (term.kind == LoopTerm::Kind::Version) {
      term.version = facts_.inductions().root(term.version);
    }
    return term;
  };
  return a.loop == b.loop && a.test == b.test && a.after_test == b.after_test &&
         a.strict == b.strict && a.decided == b.decided &&
         a.outcome_is_first == b.outcome_is_first && a.guard == b.guard &&
         a.condition.is_signed == b.condition.is_signed &&
         a.condition.value.variable == b.condition.value.variable &&
         a.condition.value.offset == b.condition.value.offset &&
         a.condition.value.is_next == b.condition.value.is_next &&
         rooted(a.condition.bound) == rooted(b.condition.bound);
}

}  // namespace ptxgen::inline v0::optimize
