// src/analysis/evaluate.cpp - results of instructions without effects from known sources
#include "analysis/evaluate.hpp"

#include "ptx/semantics/compare.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;
using u64 = std::uint64_t;

u64 extended(u64 bits, Type type) noexcept {
  return ptx::extended(bits, ptx::bits(type), kind(type) == TypeKind::Signed);
}

std::optional<u64> constant_bits(const Operand& operand, Type type) {
  const unsigned width = ptx::bits(type);
  if (width == 0 || width > 64) return std::nullopt;
  switch (operand.kind) {
    case OperandKind::Integer:
      if (kind(type) == TypeKind::Predicate) return u64{(operand.value != 0) != operand.negated};
      return low_bits(operand.value, width);
    case OperandKind::Float32:
      return width == 32 ? std::optional(operand.value) : std::nullopt;
    case OperandKind::Float64:
      return width == 64 ? std::optional(operand.value) : std::nullopt;
    default:
      return std::nullopt;
  }
}

namespace {

// One instruction on one set of known sources.
class Evaluation {
 public:
  Evaluation(const Instruction& instruction, std::span<const Operand> operands,
             const ScalarRow& row, std::span<const std::optional<u64>> known, bool names)
      : s_(instruction),
        operands_(operands),
        row_(row),
        known_(known),
        names_(names),
        type_(instruction.type(0)),
        width_(bits(type_)) {}

  Outcome run() {
    std::array<u64, ScalarRow::kMaxSources> sources{};
    bool all = true;
    for (std::size_t i = 0; i < row_.sources() && all; ++i) {
      all = has(i);
      if (all) sources[i] = at(i);
    }
    Outcome found;
    if (const auto results = all ? computed(sources) : std::nullopt) {
      found.kind = Outcome::Kind::Values;
      found.values = *results;
    } else {
      found = from_some();
    }
    found.count = static_cast<std::uint8_t>(row_.destinations());
    return found;
  }

 private:
  [[nodiscard]] std::optional<ScalarRow::Results> computed(std::span<const u64> sources) const {
    return row_ ? row_(sources) : row_.resolved(s_)(sources);
  }
  [[nodiscard]] const std::optional<u64>& known(std::size_t i) const {
    return known_[row_.operand(i)];
  }
  [[nodiscard]] bool has(std::size_t i) const { return known(i).has_value(); }
  [[nodiscard]] u64 at(std::size_t i) const { return *known(i); }
  [[nodiscard]] bool is(std::size_t i, u64 value) const { return has(i) && at(i) == value; }
  // Whether two sources name one register (or constant): they hold the same.
  [[nodiscard]] bool same(std::size_t i, std::size_t j) const {
    if (has(i) && has(j)) return at(i) == at(j);
    const Operand& a = operands_[row_.operand(i)];
    return names_ && a.kind == OperandKind::Register && a == operands_[row_.operand(j)];
  }
  [[nodiscard]] u64 ones() const { return low_bits(~u64{0}, width_); }

  [[nodiscard]] static Outcome value(u64 bits) {
    Outcome outcome;
    outcome.kind = Outcome::Kind::Values;
    outcome.values[0] = bits;
    return outcome;
  }
  [[nodiscard]] Outcome copy(std::size_t i) const {
    if (has(i)) return value(at(i));
    Outcome outcome;
    outcome.kind = Outcome::Kind::Source;
    outcome.source = static_cast<std::uint16_t>(row_.operand(i));
    return outcome;
  }
  [[nodiscard]] Outcome opposite(std::size_t i) const {
    Outcome outcome = copy(i);
    outcome.kind = Outcome::Kind::Opposite;
    return outcome;
  }

  // What follows though not every source is known.
  [[nodiscard]] Outcome from_some() const {
    switch (s_.op) {
      case Op::setp_bits:
      case Op::setp_unsigned:
      case Op::setp_signed:
      case Op::setp_bits_bool:
      case Op::setp_unsigned_bool:
      case Op::setp_signed_bool:
        return comparison();
      case Op::mov:
        return copy(0);
      case Op::selp:
        if (same(0, 1)) return copy(0);
        return has(2) ? copy(at(2) != 0 ? 0 : 1) : Outcome{};
      case Op::slct:
        if (same(0, 1)) return copy(0);
        return has(2) ? copy((at(2) >> 31 & 1) == 0 ? 0 : 1) : Outcome{};
      case Op::cvt_int:
        // Widths of registers may differ from those of the types: a caller that copies must look.
        return bits(s_.type(1)) == width_ ? copy(0) : Outcome{};
      default:
        break;
    }
    if (row_.sources() < 2) return {};
    Outcome found = one_known(0, 1);
    if (found.kind == Outcome::Kind::Unknown && ptx::has(info(s_.op).flags, Flag::Commutative))
      found = one_known(1, 0);
    return found.kind == Outcome::Kind::Unknown && same(0, 1) ? both_same() : found;
  }

  // Source `k` is known, or nothing is found; `x` is the other one.
  [[nodiscard]] Outcome one_known(std::size_t x, std::size_t k) const {
    switch (s_.op) {
      case Op::add:
      case Op::sub:
        return is(k, 0) ? copy(x) : Outcome{};
      case Op::mul:
        if (is(k, 0)) return value(0);
        return is(k, 1) && s_.get(Field::MulPart) == Modifier::lo ? copy(x) : Outcome{};
      case Op::mul_wide:
        return is(k, 0) ? value(0) : Outcome{};
      case Op::mad:
      case Op::mad_wide:
        return is(k, 0) ? copy(2) : Outcome{};
      case Op::div:
        return is(k, 1) ? copy(x) : Outcome{};
      case Op::rem:
        return is(k, 1) ? value(0) : Outcome{};
      case Op::and_:
        if (is(k, 0)) return value(0);
        return is(k, ones()) ? copy(x) : Outcome{};
      case Op::or_:
        if (is(k, ones())) return value(ones());
        return is(k, 0) ? copy(x) : Outcome{};
      case Op::xor_:
        if (width_ == 1 && is(k, 1)) return opposite(x);
        return is(k, 0) ? copy(x) : Outcome{};
      case Op::shl:
        if (has(k) && at(k) >= width_) return value(0);
        return is(k, 0) ? copy(x) : Outcome{};
      case Op::shr:
        if (has(k) && at(k) >= width_ && !is_signed(type_)) return value(0);
        return is(k, 0) ? copy(x) : Outcome{};
      default:
        return {};
    }
  }

  [[nodiscard]] Outcome both_same() const {
    switch (s_.op) {
      case Op::sub:
      case Op::xor_:
        return value(0);
      case Op::and_:
      case Op::or_:
      case Op::min:
      case Op::max:
        return copy(0);
      default:
        return {};
    }
  }

  // A comparison of values, or with an end of the type's range, combined with the predicate source.
  [[nodiscard]] Outcome comparison() const {
    const std::optional<bool> result = ordered();
    const Modifier boolean = s_.get(Field::BoolOp);
    if (boolean == Modifier::none) return result ? both(*result, !*result) : Outcome{};
    if (!result) {
      // Both halves of `p|q` are the same where the predicate decides alone.
      if (boolean == Modifier::and_ && is(2, 0)) return both(false, false);
      if (boolean == Modifier::or_ && is(2, 1)) return both(true, true);
      return {};
    }
    if (has(2)) {
      const bool with = at(2) != 0;
      return both(combined(boolean, *result, with), combined(boolean, !*result, with));
    }
    if (row_.destinations() != 1) return {};
    if (boolean == Modifier::and_) return *result ? copy(2) : value(0);
    if (boolean == Modifier::or_) return *result ? value(1) : copy(2);
    return *result ? opposite(2) : copy(2);
  }
  [[nodiscard]] Outcome both(bool first, bool second) const {
    Outcome outcome = value(first ? 1 : 0);
    outcome.values[1] = second ? 1 : 0;
    return outcome;
  }

  [[nodiscard]] std::optional<bool> ordered() const {
    const Modifier comparison = s_.get(Field::Comparison);
    if (same(0, 1)) return holds(comparison, Ordering::Equal);
    if (has(0) && has(1)) return holds(comparison, ordering(at(0), at(1), type_));
    // At an end of the type's range only two relations are possible.
    const u64 min = is_signed(type_) ? u64{1} << (width_ - 1) : 0;
    const u64 max = is_signed(type_) ? min - 1 : ones();
    const bool at_equality = holds(comparison, Ordering::Equal);
    const bool not_less = is(1, min) || is(0, max);
    const bool not_greater = is(1, max) || is(0, min);
    if ((not_less && holds(comparison, Ordering::Greater) == at_equality) ||
        (not_greater && holds(comparison, Ordering::Less) == at_equality))
      return at_equality;
    return std::nullopt;
  }

  const Instruction& s_;
  std::span<const Operand> operands_;
  const ScalarRow& row_;
  std::span<const std::optional<u64>> known_;
  bool names_;
  Type type_;
  unsigned width_;
};

// Without any value, results follow only for copies and from one register that is written twice.
bool may_follow(const Instruction& instruction, std::span<const Operand> operands,
                std::span<const std::optional<u64>> known) {
  if (instruction.op == Op::mov || instruction.op == Op::cvt_int) return true;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i] || (i > 1 && operands[i] == operands[i - 1])) return true;  // 0 is written
  }
  return false;
}

}  // namespace

Evaluator::Evaluator(const Function& function, const Instruction& instruction,
                     const OperandSpecs& specs)
    : instruction_(&instruction),
      operands_(function.operands_of(instruction)),
      row_(function, instruction, specs) {}

Outcome Evaluator::operator()(std::span<const std::optional<u64>> known, bool names) const {
  if (!row_.fits() || !may_follow(*instruction_, operands_, known)) return {};
  return Evaluation(*instruction_, operands_, row_, known, names).run();
}

Outcome evaluate(const Function& function, const Instruction& instruction,
                 std::span<const std::optional<u64>> known, bool names) {
  return evaluate(function, instruction, OperandSpecs(function, instruction), known, names);
}

Outcome evaluate(const Function& function, const Instruction& instruction,
                 const OperandSpecs& specs, std::span<const std::optional<u64>> known, bool names) {
  // The row is not looked up for instructions of which nothing is known: most of a kernel.
  if (!may_follow(instruction, function.operands_of(instruction), known)) return {};
  // The function is only needed where every source is known.
  const ScalarRow row(function, instruction, specs, false);
  if (!row.fits()) return {};
  return Evaluation(instruction, function.operands_of(instruction), row, known, names).run();
}

}  // namespace ptxgen::inline v0::analysis
