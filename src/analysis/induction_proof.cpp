// src/analysis/induction_proof.cpp - ranges, what holds before a loop, wrap-around
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

// Everything is done in the order of one type, mapped to unsigned numbers (Ordinal, upwards).
class InductionProof {
 public:
  InductionProof(const Inductions& of, std::uint32_t loop, unsigned bits, bool is_signed)
      : of_(of), loop_(loop), order_{bits, is_signed, false} {}

  using Facts = std::vector<Inductions::Fact>;

  // Least and greatest ordinal of a term where the facts hold.
  Range range(const LoopTerm& term, const Facts& facts, int depth = kDepth) const {
    if (term.constant()) return {order_(constant(term)), order_(constant(term))};
    if (!term.known()) return all();
    Range range = defined(term.version, facts, depth);
    const LoopTerm behind = rooted(term);
    for (const Inductions::Fact& fact : facts) {
      const bool first = fact.a == behind && fact.b.constant();
      const bool second = fact.b == behind && fact.a.constant();
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
    if (ra.greatest < rb.least) return true;
    if (relation == Relation::Le && ra.greatest <= rb.least) return true;
    // Below the smaller of two is below both.
    const Instruction* write = depth > 0 && right.constant() ? nullptr : definition(right);
    if (depth > 0 && write != nullptr && is_own(*write, Op::min)) {
      return known(a, relation, operand(right.version, 1), facts, depth - 1) &&
             known(a, relation, operand(right.version, 2), facts, depth - 1);
    }
    return false;
  }

  // The term that an operand of a version's definition is.
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

  // Whether bound is start + (length - min(length, step)) for a length that stays in the type: then
  // a value below it, plus the step, is still below start + length.
  bool leaves_room(const LoopTerm& start, const LoopTerm& step, const LoopTerm& bound,
                   const Facts& facts) const {
    LoopTerm distance = rooted(bound);
    if (!behind_start(start, distance)) return false;
    const Instruction* write = definition(distance);
    if (write == nullptr || !is_wide(*write, Op::sub)) return false;
    const LoopTerm length = rooted(operand(distance.version, 1));
    const LoopTerm least = rooted(operand(distance.version, 2));
    const Instruction* min = definition(least);
    if (min == nullptr || !is_unsigned(*min, Op::min)) return false;
    const LoopTerm a = rooted(operand(least.version, 1)), b = rooted(operand(least.version, 2));
    const LoopTerm by = rooted(step);
    if (!(a == length && b == by) && !(b == length && a == by)) return false;
    return fits(start, length, facts);
  }

  // Whether bound is start plus a multiple of the step, not 0, that stays in the type.
  bool is_hit(const LoopTerm& start, std::uint64_t step, const LoopTerm& bound,
              const Facts& facts) const {
    LoopTerm whole = rooted(bound);
    if (!behind_start(start, whole)) return false;
    const Instruction* write = definition(whole);
    if (write == nullptr || step == 0) return false;
    const LoopTerm length = rooted(operand(whole.version, 1));
    const LoopTerm second = rooted(operand(whole.version, 2));
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
    return plain.known({LoopTerm::Kind::Constant, kNone, 0}, Relation::Ne, whole, facts) ||
           plain.range(whole, facts).least > 0;
  }

  const Ordinal& order() const { return order_; }

 private:
  Range all() const { return {0, order_.mask()}; }

  // Takes `start +` off; false if it is not there.
  bool behind_start(const LoopTerm& start, LoopTerm& sum) const {
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
      return !order_.is_signed || range(length, facts).least >= order_(0);
    }
    const Instruction* write = definition(length);
    if (write == nullptr || !is_wide(*write, Op::sub)) return false;
    return rooted(operand(length.version, 2)) == rooted(start) &&
           known(start, Relation::Le, operand(length.version, 1), facts);
  }

  void refine(Range& range, Relation relation, std::uint64_t by) const {
    switch (relation) {
      case Relation::Lt:
        if (by > 0) range.greatest = std::min(range.greatest, by - 1);
        break;
      case Relation::Le:
        range.greatest = std::min(range.greatest, by);
        break;
      case Relation::Gt:
        if (by < order_.mask()) range.least = std::max(range.least, by + 1);
        break;
      case Relation::Ge:
        range.least = std::max(range.least, by);
        break;
      case Relation::Eq:
        range.least = std::max(range.least, by);
        range.greatest = std::min(range.greatest, by);
        break;
      case Relation::Ne:
        if (range.least == by && by < order_.mask()) ++range.least;
        if (range.greatest == by && by > 0) --range.greatest;
        break;
    }
  }

  // Numbers 0 .. most, which mean the same signed and unsigned if they leave the sign alone.
  Range up_to(std::uint64_t most) const {
    if (order_.is_signed && most > order_.mask() >> 1) return all();
    return {order_(0), order_(most)};
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
      return {std::min(a.least, b.least), std::min(a.greatest, b.greatest)};
    }
    if (is_own(*write, Op::max)) {
      const Range a = of_operand(1), b = of_operand(2);
      return {std::max(a.least, b.least), std::max(a.greatest, b.greatest)};
    }
    if (is_wide(*write, Op::and_)) {
      std::uint64_t most = order_.mask();
      for (const std::size_t number : {std::size_t{1}, std::size_t{2}}) {
        const LoopTerm t = operand(version, number);
        if (t.constant()) most = std::min(most, constant(t));
      }
      return up_to(most);
    }
    if (is_unsigned(*write, Op::rem)) {
      const LoopTerm by = operand(version, 2);
      if (by.constant() && constant(by) != 0) return up_to(constant(by) - 1);
    }
    if (is_wide(*write, Op::selp)) {
      const Range a = of_operand(1), b = of_operand(2);
      return {std::min(a.least, b.least), std::max(a.greatest, b.greatest)};
    }
    if (write->is(Op::mov) && operands[1].kind == OperandKind::Special) {
      switch (static_cast<ptx::SpecialRegister>(operands[1].id)) {
        case ptx::SpecialRegister::tid:
          return up_to(1023);
        case ptx::SpecialRegister::laneid:
          return up_to(31);
        case ptx::SpecialRegister::ntid: {
          Range range = up_to(1024);
          range.least += 1;
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
    result.least = std::min(result.least, here.least);
    result.greatest = std::max(result.greatest, here.greatest);
  }
  return {proof.order()(result.least), proof.order()(result.greatest)};
}

Inductions::Range Inductions::start_range(std::uint32_t loop, std::uint32_t variable,
                                          bool is_signed) const {
  const Induction& v = loops_[loop].variables[variable];
  const InductionProof proof(*this, loop, v.bits, is_signed);
  const auto inputs = versions_->inputs(v.phi);
  Range result{proof.order().mask(), 0};
  for (const Entry& entry : loops_[loop].entries) {
    const Range here = proof.range(term(kNone, inputs[entry.input]), entry.facts);
    result.least = std::min(result.least, here.least);
    result.greatest = std::max(result.greatest, here.greatest);
  }
  return {proof.order()(result.least), proof.order()(result.greatest)};
}

bool Inductions::starts(std::uint32_t loop, std::uint32_t variable, Relation relation,
                        const LoopTerm& other, bool is_signed) const {
  const Induction& v = loops_[loop].variables[variable];
  const InductionProof proof(*this, loop, v.bits, is_signed);
  const auto inputs = versions_->inputs(v.phi);
  for (const Entry& entry : loops_[loop].entries) {
    const LoopTerm start = term(kNone, inputs[entry.input]);
    const bool turned = relation == Relation::Gt || relation == Relation::Ge;
    const bool holds = turned ? proof.known(other, mirrored(relation), start, entry.facts)
                              : proof.known(start, relation, other, entry.facts);
    if (!holds) return false;
  }
  return !loops_[loop].entries.empty();
}

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
  if (order(down ? known.least : known.greatest) <= limit) return std::nullopt;
  if (!wrap_excluded(loop, test, is_signed, limit)) return std::nullopt;
  return order(limit);
}

bool Inductions::wrap_excluded(std::uint32_t loop, const LoopTest& test, bool is_signed,
                               std::uint64_t assumed) const {
  if (!test.goes_on || !test.every_turn) return false;
  const LoopComparison& c = *test.goes_on;
  const Induction& variable = loops_[loop].variables[c.value.variable];
  const bool equality = c.relation == Relation::Eq || c.relation == Relation::Ne;
  if (!equality && c.is_signed != is_signed) return false;
  if (!c.value.is_next && c.value.offset != 0) return false;
  if (c.value.is_next && !variable.step.constant() && c.value.offset != 0) return false;
  const Ordinal order{variable.bits, is_signed, variable.down()};
  const bool down = variable.down();
  const Relation relation = down && !equality ? mirrored(c.relation) : c.relation;
  const Relation below = down ? Relation::Gt : Relation::Lt;
  const Relation at_most = down ? Relation::Ge : Relation::Le;
  const InductionProof proof(*this, loop, variable.bits, is_signed);

  // The bound, or for a smaller of two either: what stays below it stays below both.
  std::vector<LoopTerm> bounds{proof.rooted(c.bound)};
  for (std::size_t i = 0; i < bounds.size() && i < 8; ++i) {
    const LoopTerm bound = bounds[i];
    const Instruction* write =
        relation == Relation::Lt || relation == Relation::Le ? proof.definition(bound) : nullptr;
    if (write != nullptr && proof.is_own(*write, down ? Op::max : Op::min)) {
      bounds.push_back(proof.rooted(proof.operand(bound.version, 1)));
      bounds.push_back(proof.rooted(proof.operand(bound.version, 2)));
    }
  }
  if (!variable.step.constant()) {
    // Only the form whose bound leaves room for any step, tested before the step is added.
    if (down || relation != Relation::Lt || c.value.is_next) return false;
    for (const Entry& entry : loops_[loop].entries) {
      const LoopTerm start =
          proof.rooted(term(kNone, versions_->inputs(variable.phi)[entry.input]));
      const bool any = std::any_of(bounds.begin(), bounds.end(), [&](const LoopTerm& bound) {
        return proof.leaves_room(start, variable.step, bound, entry.facts);
      });
      if (!any) return false;
    }
    return !loops_[loop].entries.empty();
  }

  const std::uint64_t mask = order.mask();
  const std::uint64_t step = down ? (0 - variable.step.value) & mask : variable.step.value & mask;
  if (step == 0) return false;
  if (variable.start.constant() && c.bound.constant()) {
    const auto turns = turns_of(variable.start.value + c.value.offset, variable.step.value,
                                c.relation, c.bound.value, is_signed, variable.bits);
    return turns && (mask - order(variable.start.value)) / step >= *turns - 1;
  }
  const auto greatest = [&](Range r) { return order(down ? r.least : r.greatest); };
  const auto all_entries = [&](auto&& holds) {
    const auto& entries = loops_[loop].entries;
    return !entries.empty() && std::all_of(entries.begin(), entries.end(), [&](const Entry& entry) {
      return holds(proof.rooted(term(kNone, versions_->inputs(variable.phi)[entry.input])),
                   entry.facts);
    });
  };
  const auto hit = [&](const LoopTerm& bound) {
    return !down && all_entries([&](const LoopTerm& start, const auto& facts) {
      return proof.is_hit(start, step, bound, facts);
    });
  };
  const auto has_room = [&](const LoopTerm& bound) {
    return !down && all_entries([&](const LoopTerm& start, const auto& facts) {
      return proof.leaves_room(start, variable.step, bound, facts);
    });
  };
  for (const LoopTerm& bound : bounds) {
    const std::uint64_t most =
        std::min(assumed, greatest(range(loop, bound, variable.bits, is_signed)));
    bool later = false, first_in = false;  // values behind the first; the first
    switch (relation) {
      case Relation::Lt:
        later = step == 1 || (most != 0 && most - 1 <= mask - step);
        later = later || (!c.value.is_next && has_room(bound));
        first_in = starts(loop, c.value.variable, below, bound, is_signed);
        if (hit(bound)) later = first_in = true;
        break;
      case Relation::Le:
        later = most <= mask - step;
        first_in = starts(loop, c.value.variable, at_most, bound, is_signed);
        break;
      case Relation::Ne:
        later = step == 1;
        first_in =
            starts(loop, c.value.variable, c.value.is_next ? below : at_most, bound, is_signed);
        if (hit(bound)) later = first_in = true;
        break;
      default:
        break;
    }
    if (!later) continue;
    if (first_in) return true;
    if (relation == Relation::Ne) continue;
    // Tested before the step is added, the first value is no exception.
    if (!c.value.is_next) return true;
    if (greatest(start_range(loop, c.value.variable, is_signed)) <= mask - step) return true;
  }
  return false;
}

TripCount Inductions::trip_count(std::uint32_t loop) const {
  TripCount result;
  const auto& tests = loops_[loop].tests;
  // Of several tests none alone tells how often the loop turns.
  const LoopTest* only = tests.size() == 1 ? &tests[0] : nullptr;
  if (only == nullptr || !only->goes_on || !only->every_turn) return result;
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
    const auto turns = turns_of(variable.start.value + c.value.offset, variable.step.value,
                                c.relation, c.bound.value, c.is_signed, variable.bits);
    if (turns) {
      result.kind = TripCount::Kind::Constant;
      result.turns = only->top ? *turns - 1 : *turns;
    }
  }
  if (result.kind == TripCount::Kind::Unknown) result.kind = TripCount::Kind::Symbolic;
  const bool equality = c.relation == Relation::Eq || c.relation == Relation::Ne;
  result.wrap_excluded = wrap_excluded(loop, *only, c.is_signed) ||
                         (equality && wrap_excluded(loop, *only, !c.is_signed));
  return result;
}

}  // namespace ptxgen::inline v0::analysis
