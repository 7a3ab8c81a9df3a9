// src/analysis/induction_proof.cpp - ranges, entry facts and wrap-around of inductions
#include <algorithm>

#include "analysis/ordinal.hpp"
#include "ptxgen/analysis/induction.hpp"

namespace ptxgen::inline v0::analysis {

using ptx::Instruction;
using ptx::kNone;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;

namespace {

// How deep definitions are followed.
constexpr int kDepth = 6;

using Range = Inductions::Range;

std::uint64_t constant(const LoopTerm& term) { return term.value; }

}  // namespace

// Works in the order of one type, mapped to unsigned numbers (Ordinal, upwards).
class InductionProof {
 public:
  InductionProof(const Inductions& of, std::uint32_t loop, unsigned bits, bool is_signed)
      : of_(of), loop_(loop), order_{bits, is_signed, false} {}

  using Facts = std::vector<Inductions::Fact>;

  // The range of a term in ordinals if the facts hold.
  Range range(const LoopTerm& term, const Facts& facts, int depth = kDepth) const {
    if (term.constant()) return {order_(constant(term)), order_(constant(term))};
    if (!term.known()) return all();
    Range range = defined(term.version, facts, depth);
    const LoopTerm root = rooted(term);
    for (const Inductions::Fact& fact : facts) {
      const bool first = fact.a == root && fact.b.constant();
      const bool second = fact.b == root && fact.a.constant();
      if (first == second) continue;
      const bool equality = fact.relation == Relation::Eq || fact.relation == Relation::Ne;
      if (!equality && fact.is_signed != order_.is_signed) continue;
      refine(range, first ? fact.relation : mirrored(fact.relation),
             order_(constant(first ? fact.b : fact.a)));
    }
    return range;
  }

  // Whether a relation b follows from the facts. Lt, Le, Ne only.
  bool known(const LoopTerm& a, Relation relation, const LoopTerm& b, const Facts& facts,
             int depth = kDepth) const {
    if (!a.known() || !b.known()) return false;
    const LoopTerm left = rooted(a), right = rooted(b);
    if (left == right) return relation == Relation::Le;
    for (const Inductions::Fact& fact : facts) {
      const bool straight = fact.a == left && fact.b == right;
      if (!straight && !(fact.b == left && fact.a == right)) continue;
      const Relation has = straight ? fact.relation : mirrored(fact.relation);
      const bool equality = has == Relation::Eq || has == Relation::Ne;
      if (!equality && fact.is_signed != order_.is_signed) continue;
      if (has == relation) return true;
      if (has == Relation::Lt) return true;
      if (has == Relation::Gt && relation == Relation::Ne) return true;
      if (has == Relation::Eq && relation == Relation::Le) return true;
    }
    const Range ra = range(a, facts, depth), rb = range(b, facts, depth);
    if (ra.max < rb.min) return true;
    if (relation == Relation::Le && ra.max <= rb.min) return true;
    // Below the smaller of two is below both.
    const Instruction* write = depth > 0 && right.constant() ? nullptr : definition(right);
    if (depth > 0 && write != nullptr && is_own(*write, Op::min)) {
      return known(a, relation, operand(right.version, 1), facts, depth - 1) &&
             known(a, relation, operand(right.version, 2), facts, depth - 1);
    }
    return false;
  }

  // An operand of a version's definition as a term.
  LoopTerm operand(std::uint32_t version, std::size_t number) const {
    const Instruction* write = of_.definition(version);
    const Operand& o = of_.function_->operands_of(*write)[number];
    if (o.kind == OperandKind::Integer) {
      return {LoopTerm::Kind::Constant, kNone, o.value & order_.mask()};
    }
    const std::uint32_t from = of_.source(version, number);
    return from == kNone ? LoopTerm{} : of_.term(kNone, from);
  }

  const Instruction* definition(const LoopTerm& term) const {
    return term.kind == LoopTerm::Kind::Version ? of_.definition(of_.root(term.version)) : nullptr;
  }

  LoopTerm rooted(LoopTerm term) const {
    if (term.kind == LoopTerm::Kind::Version) term = of_.term(kNone, of_.root(term.version));
    return term;
  }

  // A row of this order's type.
  bool is_own(const Instruction& write, Op op) const {
    if (!write.is(op)) return false;
    const ptx::Type type = write.type();
    return ptx::bits(type) == order_.bits &&
           (ptx::kind(type) == ptx::TypeKind::Signed) == order_.is_signed;
  }
  bool is_unsigned(const Instruction& write, Op op) const {
    return write.is(op) && ptx::bits(write.type()) == order_.bits &&
           ptx::kind(write.type()) == ptx::TypeKind::Unsigned;
  }
  bool is_wide(const Instruction& write, Op op) const {
    return write.is(op) && ptx::bits(write.type()) == order_.bits;
  }

  // Whether bound is start + (length - min(length, step)) for a length that fits the type. Then a
  // value below the bound, plus the step, is below start + length.
  bool leaves_step(const LoopTerm& start, const LoopTerm& step, const LoopTerm& bound,
                   const Facts& facts) const {
    LoopTerm distance = rooted(bound);
    if (!after_start(start, distance)) return false;
    const Instruction* write = definition(distance);
    if (write == nullptr || !is_wide(*write, Op::sub)) return false;
    const LoopTerm length = rooted(operand(distance.version, 1));
    const LoopTerm rest = rooted(operand(distance.version, 2));
    const Instruction* min = definition(rest);
    if (min == nullptr || !is_unsigned(*min, Op::min)) return false;
    const LoopTerm a = rooted(operand(rest.version, 1)), b = rooted(operand(rest.version, 2));
    const LoopTerm by = rooted(step);
    if (!(a == length && b == by) && !(b == length && a == by)) return false;
    return fits(start, length, facts);
  }

  // Whether bound is start plus a nonzero multiple of the step that fits the type.
  bool is_hit(const LoopTerm& start, std::uint64_t step, const LoopTerm& bound,
              const Facts& facts) const {
    LoopTerm end = rooted(bound);
    if (!after_start(start, end)) return false;
    const Instruction* write = definition(end);
    if (write == nullptr || step == 0) return false;
    const LoopTerm length = rooted(operand(end.version, 1));
    const LoopTerm second = rooted(operand(end.version, 2));
    bool multiple = false;
    if (is_wide(*write, Op::and_) && second.constant()) {
      multiple = (step & (step - 1)) == 0 && (constant(second) & (step - 1)) == 0;
    } else if (is_wide(*write, Op::sub)) {
      const Instruction* rest = definition(second);
      multiple =
          rest != nullptr && is_unsigned(*rest, Op::rem) &&
          rooted(operand(second.version, 1)) == length &&
          rooted(operand(second.version, 2)) == LoopTerm{LoopTerm::Kind::Constant, kNone, step};
    }
    if (!multiple || !fits(start, length, facts)) return false;
    const InductionProof plain(of_, loop_, order_.bits, false);
    return plain.known({LoopTerm::Kind::Constant, kNone, 0}, Relation::Ne, end, facts) ||
           plain.range(end, facts).min > 0;
  }

  const Ordinal& order() const { return order_; }

 private:
  Range all() const { return {0, order_.mask()}; }

  // Removes `start +`; false if the sum does not have this form.
  bool after_start(const LoopTerm& start, LoopTerm& sum) const {
    if (start.constant() && constant(start) == 0) return true;
    const Instruction* write = definition(sum);
    if (write == nullptr || !is_wide(*write, Op::add)) return false;
    const LoopTerm from = rooted(start);
    const LoopTerm a = rooted(operand(sum.version, 1)), b = rooted(operand(sum.version, 2));
    if (!(a == from) && !(b == from)) return false;
    sum = a == from ? b : a;
    return true;
  }

  // Whether start + length, the length unsigned, is a number of the type.
  bool fits(const LoopTerm& start, const LoopTerm& length, const Facts& facts) const {
    if (start.constant() && constant(start) == 0) {
      return !order_.is_signed || range(length, facts).min >= order_(0);
    }
    const Instruction* write = definition(length);
    if (write == nullptr || !is_wide(*write, Op::sub)) return false;
    return rooted(operand(length.version, 2)) == rooted(start) &&
           known(start, Relation::Le, operand(length.version, 1), facts);
  }

  void refine(Range& range, Relation relation, std::uint64_t by) const {
    switch (relation) {
      case Relation::Lt:
        if (by > 0) range.max = std::min(range.max, by - 1);
        break;
      case Relation::Le:
        range.max = std::min(range.max, by);
        break;
      case Relation::Gt:
        if (by < order_.mask()) range.min = std::max(range.min, by + 1);
        break;
      case Relation::Ge:
        range.min = std::max(range.min, by);
        break;
      case Relation::Eq:
        range.min = std::max(range.min, by);
        range.max = std::min(range.max, by);
        break;
      case Relation::Ne:
        if (range.min == by && by < order_.mask()) ++range.min;
        if (range.max == by && by > 0) --range.max;
        break;
    }
  }

  // The numbers 0 .. max, which are the same signed and unsigned if the sign bit is clear.
  Range up_to(std::uint64_t max) const {
    if (order_.is_signed && max > order_.mask() >> 1) return all();
    return {order_(0), order_(max)};
  }

  Range defined(std::uint32_t version, const Facts& facts, int depth) const {
    version = of_.root(version);
    const Instruction* write = of_.definition(version);
    if (write == nullptr || depth == 0) return all();
    const auto of_operand = [&](std::size_t number) {
      return range(operand(version, number), facts, depth - 1);
    };
    const auto operands = of_.function_->operands_of(*write);
    if (is_own(*write, Op::min)) {
      const Range a = of_operand(1), b = of_operand(2);
      return {std::min(a.min, b.min), std::min(a.max, b.max)};
    }
    if (is_own(*write, Op::max)) {
      const Range a = of_operand(1), b = of_operand(2);
      return {std::max(a.min, b.min), std::max(a.max, b.max)};
    }
    if (is_wide(*write, Op::and_)) {
      std::uint64_t max = order_.mask();
      for (const std::size_t number : {std::size_t{1}, std::size_t{2}}) {
        const LoopTerm t = operand(version, number);
        if (t.constant()) max = std::min(max, constant(t));
      }
      return up_to(max);
    }
    if (is_unsigned(*write, Op::rem)) {
      const LoopTerm by = operand(version, 2);
      if (by.constant() && constant(by) != 0) return up_to(constant(by) - 1);
    }
    if (is_wide(*write, Op::selp)) {
      const Range a = of_operand(1), b = of_operand(2);
      return {std::min(a.min, b.min), std::max(a.max, b.max)};
    }
    if (write->is(Op::mov) && operands[1].kind == OperandKind::Special) {
      switch (static_cast<ptx::SpecialRegister>(operands[1].id)) {
        case ptx::SpecialRegister::tid:
          return up_to(1023);
        case ptx::SpecialRegister::laneid:
          return up_to(31);
        case ptx::SpecialRegister::ntid: {
          Range range = up_to(1024);
          range.min += 1;
          return range;
        }
        default:
          return all();
      }
    }
    return all();
  }

  const Inductions& of_;
  std::uint32_t loop_;
  Ordinal order_;
};

Inductions::Range Inductions::range(std::uint32_t loop, const LoopTerm& term, unsigned bits,
                                    bool is_signed) const {
  const InductionProof proof(*this, loop, bits, is_signed);
  Range result{proof.order().mask(), 0};
  for (const Entry& entry : loops_[loop].entries) {
    const Range here = proof.range(term, entry.facts);
    result.min = std::min(result.min, here.min);
    result.max = std::max(result.max, here.max);
  }
  return {proof.order()(result.min), proof.order()(result.max)};
}

Inductions::Range Inductions::start_range(std::uint32_t loop, std::uint32_t variable,
                                          bool is_signed) const {
  const Induction& v = loops_[loop].variables[variable];
  const InductionProof proof(*this, loop, v.bits, is_signed);
  const auto inputs = versions_->inputs(v.phi);
  Range result{proof.order().mask(), 0};
  for (const Entry& entry : loops_[loop].entries) {
    const Range here = proof.range(term(kNone, inputs[entry.input]), entry.facts);
    result.min = std::min(result.min, here.min);
    result.max = std::max(result.max, here.max);
  }
  return {proof.order()(result.min), proof.order()(result.max)};
}

bool Inductions::starts(std::uint32_t loop, std::uint32_t variable, Relation relation,
                        const LoopTerm& other, bool is_signed) const {
  const Induction& v = loops_[loop].variables[variable];
  const InductionProof proof(*this, loop, v.bits, is_signed);
  const auto inputs = versions_->inputs(v.phi);
  for (const Entry& entry : loops_[loop].entries) {
    const LoopTerm start = term(kNone, inputs[entry.input]);
    const bool mirror = relation == Relation::Gt || relation == Relation::Ge;
    const bool holds = mirror ? proof.known(other, mirrored(relation), start, entry.facts)
                              : proof.known(start, relation, other, entry.facts);
    if (!holds) return false;
  }
  return !loops_[loop].entries.empty();
}

// Whether the variable of a comparison never wraps around. Ordinals grow in the direction in which
// the loop runs; relations are mirrored for a variable that runs down.
class WrapProof {
 public:
  WrapProof(const Inductions& of, std::uint32_t loop, const LoopComparison& c, bool is_signed)
      : of_(of),
        loop_(loop),
        c_(c),
        is_signed_(is_signed),
        variable_(of.loops_[loop].variables[c.value.variable]),
        down_(variable_.down()),
        order_{variable_.bits, is_signed, down_},
        relation_(down_ && !is_equality() ? mirrored(c.relation) : c.relation),
        proof_(of, loop, variable_.bits, is_signed),
        step_((down_ ? 0 - variable_.step.value : variable_.step.value) & order_.mask()) {}

  // `assumed`: an ordinal that the bound is assumed not to exceed.
  [[nodiscard]] bool excluded(std::uint64_t assumed) const {
    if (!is_equality() && c_.is_signed != is_signed_) return false;
    const bool exact = c_.value.is_next && variable_.step.constant();
    if (!exact && c_.value.offset != 0) return false;
    if (!variable_.step.constant()) return excluded_for_any_step();
    if (step_ == 0) return false;
    if (variable_.start.constant() && c_.bound.constant()) return excluded_by_count();
    for (const LoopTerm& bound : bounds()) {
      if (excluded_by(bound, assumed)) return true;
    }
    return false;
  }

 private:
  using Facts = InductionProof::Facts;

  [[nodiscard]] bool is_equality() const {
    return c_.relation == Relation::Eq || c_.relation == Relation::Ne;
  }

  // The bound. If it is the smaller of two terms, these too: a value below it is below both.
  [[nodiscard]] std::vector<LoopTerm> bounds() const {
    std::vector<LoopTerm> found{proof_.rooted(c_.bound)};
    if (relation_ != Relation::Lt && relation_ != Relation::Le) return found;
    for (std::size_t i = 0; i < found.size() && i < 8; ++i) {
      const LoopTerm bound = found[i];
      const Instruction* write = proof_.definition(bound);
      if (write == nullptr || !proof_.is_own(*write, down_ ? Op::max : Op::min)) continue;
      found.push_back(proof_.rooted(proof_.operand(bound.version, 1)));
      found.push_back(proof_.rooted(proof_.operand(bound.version, 2)));
    }
    return found;
  }

  // Whether `holds(start, facts)` is true at every entry of the loop.
  template <class Fn>
  [[nodiscard]] bool at_all_entries(Fn&& holds) const {
    const auto& entries = of_.loops_[loop_].entries;
    const auto inputs = of_.versions_->inputs(variable_.phi);
    return !entries.empty() && std::all_of(entries.begin(), entries.end(), [&](const auto& entry) {
      return holds(proof_.rooted(of_.term(kNone, inputs[entry.input])), entry.facts);
    });
  }
  [[nodiscard]] bool leaves_step(const LoopTerm& bound) const {
    return !down_ && at_all_entries([&](const LoopTerm& start, const Facts& facts) {
      return proof_.leaves_step(start, variable_.step, bound, facts);
    });
  }
  [[nodiscard]] bool is_hit(const LoopTerm& bound) const {
    return !down_ && at_all_entries([&](const LoopTerm& start, const Facts& facts) {
      return proof_.is_hit(start, step_, bound, facts);
    });
  }

  // Only for a bound that leaves space for any step, tested before the step is added.
  [[nodiscard]] bool excluded_for_any_step() const {
    if (down_ || relation_ != Relation::Lt || c_.value.is_next) return false;
    const auto all = bounds();
    return at_all_entries([&](const LoopTerm& start, const Facts& facts) {
      return std::any_of(all.begin(), all.end(), [&](const LoopTerm& bound) {
        return proof_.leaves_step(start, variable_.step, bound, facts);
      });
    });
  }

  // Start, step and bound are constants.
  [[nodiscard]] bool excluded_by_count() const {
    const auto iterations =
        iteration_count(variable_.start.value + c_.value.offset, variable_.step.value, c_.relation,
                        c_.bound.value, is_signed_, variable_.bits);
    return iterations && (order_.mask() - order_(variable_.start.value)) / step_ >= *iterations - 1;
  }

  [[nodiscard]] std::uint64_t last_of(Range range) const {
    return order_(down_ ? range.min : range.max);
  }

  [[nodiscard]] bool excluded_by(const LoopTerm& bound, std::uint64_t assumed) const {
    const std::uint64_t mask = order_.mask();
    const std::uint64_t max =
        std::min(assumed, last_of(of_.range(loop_, bound, variable_.bits, is_signed_)));
    const auto starts = [&](bool strict) {
      const Relation relation =
          strict ? (down_ ? Relation::Gt : Relation::Lt) : (down_ ? Relation::Ge : Relation::Le);
      return of_.starts(loop_, c_.value.variable, relation, bound, is_signed_);
    };
    bool later = false, first = false;  // whether values after the first, and the first, are safe
    switch (relation_) {
      case Relation::Lt:
        later = step_ == 1 || (max != 0 && max - 1 <= mask - step_);
        later = later || (!c_.value.is_next && leaves_step(bound));
        first = starts(true);
        if (is_hit(bound)) later = first = true;
        break;
      case Relation::Le:
        later = max <= mask - step_;
        first = starts(false);
        break;
      case Relation::Ne:
        later = step_ == 1;
        first = starts(c_.value.is_next);
        if (is_hit(bound)) later = first = true;
        break;
      default:
        break;
    }
    if (!later) return false;
    if (first) return true;
    if (relation_ == Relation::Ne) return false;
    // If tested before the step is added, the first value is no exception.
    if (!c_.value.is_next) return true;
    return last_of(of_.start_range(loop_, c_.value.variable, is_signed_)) <= mask - step_;
  }

  const Inductions& of_;
  const std::uint32_t loop_;
  const LoopComparison& c_;
  const bool is_signed_;
  const Induction& variable_;
  const bool down_;
  const Ordinal order_;
  const Relation relation_;
  const InductionProof proof_;
  const std::uint64_t step_;  // if constant
};

bool Inductions::wrap_excluded(std::uint32_t loop, const LoopTest& test, bool is_signed) const {
  return wrap_excluded(loop, test, is_signed, ~std::uint64_t{0});
}

std::optional<std::uint64_t> Inductions::wrap_limit(std::uint32_t loop, const LoopTest& test,
                                                    bool is_signed) const {
  if (!test.goes_on || loops_[loop].entries.size() != 1) return std::nullopt;
  const LoopComparison& c = *test.goes_on;
  const Induction& variable = loops_[loop].variables[c.value.variable];
  if (c.bound.kind != LoopTerm::Kind::Version || !variable.step.constant()) return std::nullopt;
  const bool down = variable.down();
  const Ordinal order{variable.bits, is_signed, down};
  const Relation relation = down ? mirrored(c.relation) : c.relation;
  if (relation != Relation::Lt && relation != Relation::Le) return std::nullopt;
  const std::uint64_t step = (down ? 0 - variable.step.value : variable.step.value) & order.mask();
  if (step == 0) return std::nullopt;
  const std::uint64_t limit = order.mask() - step + (relation == Relation::Lt ? 1 : 0);
  const Range known = range(loop, c.bound, variable.bits, is_signed);
  if (order(down ? known.min : known.max) <= limit) return std::nullopt;
  if (!wrap_excluded(loop, test, is_signed, limit)) return std::nullopt;
  return order(limit);
}

bool Inductions::wrap_excluded(std::uint32_t loop, const LoopTest& test, bool is_signed,
                               std::uint64_t assumed) const {
  if (!test.goes_on || !test.every_iteration) return false;
  return WrapProof(*this, loop, *test.goes_on, is_signed).excluded(assumed);
}

TripCount Inductions::trip_count(std::uint32_t loop) const {
  TripCount result;
  const auto& tests = loops_[loop].tests;
  // With several tests no single one determines the iterations.
  const LoopTest* only = tests.size() == 1 ? &tests[0] : nullptr;
  if (only == nullptr || !only->goes_on || !only->every_iteration) return result;
  for (const std::uint32_t block : cfg_->loops().nodes(loop)) {
    // brx.idx, ret and the like are ways out as well.
    for (const std::uint32_t next : cfg_->successors(block)) {
      if (!cfg_->loops().contains(loop, next) && (block != only->block || next != only->leaves)) {
        return result;
      }
    }
  }
  const LoopComparison& c = *only->goes_on;
  const Induction& variable = loops_[loop].variables[c.value.variable];
  result.test = 0;
  if (variable.start.constant() && variable.step.constant() && c.bound.constant()) {
    const auto iterations =
        iteration_count(variable.start.value + c.value.offset, variable.step.value, c.relation,
                        c.bound.value, c.is_signed, variable.bits);
    if (iterations) {
      result.kind = TripCount::Kind::Constant;
      result.iterations = only->top ? *iterations - 1 : *iterations;
    }
  }
  if (result.kind == TripCount::Kind::Unknown) result.kind = TripCount::Kind::Symbolic;
  const bool equality = c.relation == Relation::Eq || c.relation == Relation::Ne;
  result.wrap_excluded = wrap_excluded(loop, *only, c.is_signed) ||
                         (equality && wrap_excluded(loop, *only, !c.is_signed));
  return result;
}

}  // namespace ptxgen::inline v0::analysis
