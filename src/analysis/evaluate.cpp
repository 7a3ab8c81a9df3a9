// src/analysis/evaluate.cpp - what instructions without effects compute from known sources
#include "analysis/evaluate.hpp"

#include <algorithm>
#include <bit>

namespace ptxgen::inline v0::analysis {

using namespace ptx;
using u64 = std::uint64_t;
using s64 = std::int64_t;

u64 extended(u64 bits, Type type) noexcept {
  const unsigned width = ptx::bits(type);
  const u64 low = low_bits(bits, width);
  if (kind(type) != TypeKind::Signed || width >= 64 || (low >> (width - 1) & 1) == 0) return low;
  return low | ~low_bits(~u64{0}, width);
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

bool is_signed(Type type) { return kind(type) == TypeKind::Signed; }

u64 high_product(u64 a, u64 b, bool with_sign) {
  const u64 a0 = a & 0xffffffff, a1 = a >> 32, b0 = b & 0xffffffff, b1 = b >> 32;
  const u64 low = a0 * b0;
  const u64 left = a1 * b0 + (low >> 32);
  const u64 right = a0 * b1 + (left & 0xffffffff);
  u64 high = a1 * b1 + (left >> 32) + (right >> 32);
  if (with_sign && static_cast<s64>(a) < 0) high -= b;
  if (with_sign && static_cast<s64>(b) < 0) high -= a;
  return high;
}

// Which half a mul or mad keeps, of operands of type `type`.
u64 product(const Instruction& s, u64 a, u64 b, Type type) {
  const u64 x = extended(a, type), y = extended(b, type);
  const unsigned width = bits(type);
  if (s.get(Field::MulPart) != Modifier::hi) return x * y;
  return width == 64 ? high_product(x, y, is_signed(type)) : x * y >> width;
}

std::optional<bool> compared(Modifier comparison, u64 a, u64 b, Type type) {
  const u64 x = extended(a, type), y = extended(b, type);
  const bool less = is_signed(type) ? static_cast<s64>(x) < static_cast<s64>(y) : x < y;
  switch (comparison) {
    case Modifier::eq:
      return x == y;
    case Modifier::ne:
      return x != y;
    case Modifier::lt:
    case Modifier::lo:
      return less;
    case Modifier::le:
    case Modifier::ls:
      return less || x == y;
    case Modifier::gt:
    case Modifier::hi:
      return !less && x != y;
    case Modifier::ge:
    case Modifier::hs:
      return !less;
    default:
      return std::nullopt;
  }
}

bool combined(Modifier boolean, bool value, bool with) {
  return boolean == Modifier::and_   ? value && with
         : boolean == Modifier::or_  ? value || with
         : boolean == Modifier::xor_ ? value != with
                                     : value;
}

u64 clamped(u64 value, bool from_signed, Type to) {
  const unsigned width = bits(to);
  const u64 top = u64{1} << (width - 1);
  const u64 most = is_signed(to) ? top - 1 : low_bits(~u64{0}, width);
  if (from_signed && static_cast<s64>(value) < 0)
    return is_signed(to) ? low_bits(0 - std::min(0 - value, top), width) : 0;
  return std::min(value, most);
}

// One instruction with its sources in order.
class Evaluator {
 public:
  Evaluator(const Function& function, const Instruction& instruction, const OperandSpecs& specs,
            std::span<const std::optional<u64>> known, bool names)
      : s_(instruction),
        operands_(function.operands_of(instruction)),
        known_(known),
        names_(names) {
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const OperandSpec* spec = specs[i];
      if (spec == nullptr || operands_[i].kind == OperandKind::Vector ||
          places_.size() <= sources_) {
        fits_ = false;
        return;
      }
      if (spec->role == OperandRole::Destination) {
        ++destinations_;
      } else {
        places_[sources_++] = i;
      }
    }
    fits_ = destinations_ != 0 && destinations_ <= 2;
    type_ = instruction.type(0);
    width_ = bits(type_);
  }

  Outcome run() {
    if (!fits_) return {};
    bool all = true;
    for (std::size_t i = 0; i < sources_; ++i) all = all && has(i);
    Outcome found = all ? from_values() : Outcome{};
    if (found.kind == Outcome::Kind::Unknown) found = from_some();
    found.count = static_cast<std::uint8_t>(destinations_);
    return found;
  }

 private:
  [[nodiscard]] bool has(std::size_t i) const { return known_[places_[i]].has_value(); }
  [[nodiscard]] u64 at(std::size_t i) const { return *known_[places_[i]]; }
  [[nodiscard]] bool is(std::size_t i, u64 value) const { return has(i) && at(i) == value; }
  // Whether two sources name one register (or constant): they hold the same.
  [[nodiscard]] bool same(std::size_t i, std::size_t j) const {
    if (has(i) && has(j)) return at(i) == at(j);
    const Operand& a = operands_[places_[i]];
    return names_ && a.kind == OperandKind::Register && a == operands_[places_[j]];
  }
  [[nodiscard]] u64 ones() const { return low_bits(~u64{0}, width_); }

  [[nodiscard]] Outcome value(u64 bits) const {
    Outcome outcome;
    outcome.kind = Outcome::Kind::Values;
    outcome.values[0] = bits;
    return outcome;
  }
  [[nodiscard]] Outcome cut(u64 bits) const { return value(low_bits(bits, width_)); }
  [[nodiscard]] Outcome copy(std::size_t i) const {
    if (has(i)) return value(at(i));
    Outcome outcome;
    outcome.kind = Outcome::Kind::Source;
    outcome.source = static_cast<std::uint16_t>(places_[i]);
    return outcome;
  }
  [[nodiscard]] Outcome opposite(std::size_t i) const {
    Outcome outcome = copy(i);
    outcome.kind = Outcome::Kind::Opposite;
    return outcome;
  }

  [[nodiscard]] Outcome from_values() const {
    Outcome found = arithmetic();
    if (found.kind == Outcome::Kind::Unknown) found = bit_fields();
    if (found.kind == Outcome::Kind::Unknown) found = logic();
    if (found.kind == Outcome::Kind::Unknown) found = conversion();
    return found;
  }

  [[nodiscard]] Outcome arithmetic() const {
    const Type type = type_;
    const auto x = [&](std::size_t i) { return extended(at(i), type); };
    const auto less = [&] {
      return is_signed(type) ? static_cast<s64>(x(0)) < static_cast<s64>(x(1)) : x(0) < x(1);
    };
    switch (s_.op) {
      case Op::add:
        return cut(at(0) + at(1));
      case Op::sub:
        return cut(at(0) - at(1));
      case Op::add_sat:
        return value(clamped(x(0) + x(1), true, type));
      case Op::sub_sat:
        return value(clamped(x(0) - x(1), true, type));
      case Op::mul:
        return cut(product(s_, at(0), at(1), type));
      case Op::mad:
        return cut(product(s_, at(0), at(1), type) + at(2));
      case Op::mul_wide:
        return value(low_bits(x(0) * x(1), 2 * width_));
      case Op::mad_wide:
        return value(low_bits(x(0) * x(1) + at(2), 2 * width_));
      case Op::sad:
        return cut(at(2) + (less() ? x(1) - x(0) : x(0) - x(1)));
      case Op::div:
      case Op::rem:
        return division();
      case Op::abs:
        return cut(static_cast<s64>(x(0)) < 0 ? 0 - x(0) : x(0));
      case Op::neg:
        return cut(0 - at(0));
      case Op::min:
        return cut(less() ? x(0) : x(1));
      case Op::max:
        return cut(less() ? x(1) : x(0));
      default:
        return {};
    }
  }

  [[nodiscard]] Outcome division() const {
    const u64 a = extended(at(0), type_), b = extended(at(1), type_);
    if (b == 0) return {};
    const bool quotient = s_.op == Op::div;
    if (!is_signed(type_)) return cut(quotient ? a / b : a % b);
    // The most negative number by -1 does not fit.
    if (b == ~u64{0}) return cut(quotient ? 0 - a : 0);
    const s64 x = static_cast<s64>(a), y = static_cast<s64>(b);
    return cut(static_cast<u64>(quotient ? x / y : x % y));
  }

  [[nodiscard]] Outcome bit_fields() const {
    switch (s_.op) {
      case Op::popc:
        return value(static_cast<u64>(std::popcount(at(0))));
      case Op::clz:
        return value(static_cast<u64>(std::countl_zero(at(0))) - (64 - width_));
      case Op::bfind: {
        const u64 x = extended(at(0), type_);
        const u64 searched = low_bits(is_signed(type_) && static_cast<s64>(x) < 0 ? ~x : x, width_);
        if (searched == 0) return value(0xffffffff);
        const u64 top = 63 - static_cast<u64>(std::countl_zero(searched));
        return value(s_.has(Field::ShiftAmount) ? width_ - 1 - top : top);
      }
      case Op::brev: {
        u64 turned = 0;
        for (unsigned i = 0; i < width_; ++i) turned |= (at(0) >> i & 1) << (width_ - 1 - i);
        return value(turned);
      }
      case Op::bfe: {
        const u64 from = at(1) & 0xff, length = at(2) & 0xff;
        if (length == 0) return value(0);
        const u64 last = std::min<u64>(from + length - 1, width_ - 1);
        const u64 fill = is_signed(type_) && (at(0) >> last & 1) != 0 ? ~u64{0} : u64{0};
        if (from >= width_) return cut(fill);
        const unsigned there = static_cast<unsigned>(last - from + 1);
        const u64 field = low_bits(at(0) >> from, there);
        return cut(there >= 64 ? field : field | fill << there);
      }
      case Op::bfi: {
        const u64 from = at(2) & 0xff, length = at(3) & 0xff;
        if (from >= width_) return cut(at(1));
        const u64 there = low_bits(~u64{0}, static_cast<unsigned>(length)) << from;
        return cut((at(1) & ~there) | (at(0) << from & there));
      }
      default:
        return {};
    }
  }

  [[nodiscard]] Outcome logic() const {
    switch (s_.op) {
      case Op::and_:
        return value(at(0) & at(1));
      case Op::or_:
        return value(at(0) | at(1));
      case Op::xor_:
        return value(at(0) ^ at(1));
      case Op::not_:
        return cut(~at(0));
      case Op::cnot:
        return value(at(0) == 0 ? 1 : 0);
      case Op::lop3: {
        u64 result = 0;
        for (unsigned i = 0; i < 32; ++i) {
          const u64 row = (at(0) >> i & 1) << 2 | (at(1) >> i & 1) << 1 | (at(2) >> i & 1);
          result |= (at(3) >> row & 1) << i;
        }
        return value(result);
      }
      case Op::shf: {
        const u64 both = at(1) << 32 | at(0);
        const u64 count =
            s_.get(Field::ClampMode) == Modifier::clamp ? std::min<u64>(at(2), 32) : at(2) & 31;
        const bool left = s_.get(Field::FunnelDirection) == Modifier::l;
        return value(low_bits(left ? both << count >> 32 : both >> count, 32));
      }
      case Op::shl:
        return at(1) >= width_ ? value(0) : cut(at(0) << at(1));
      case Op::shr: {
        const u64 x = extended(at(0), type_);
        const u64 count = std::min<u64>(at(1), 63);
        if (is_signed(type_)) return cut(static_cast<u64>(static_cast<s64>(x) >> count));
        return value(at(1) >= width_ ? 0 : x >> count);
      }
      case Op::prmt:
        return permuted();
      default:
        return {};
    }
  }

  [[nodiscard]] Outcome permuted() const {
    if (s_.has(Field::PermuteMode)) return {};
    const u64 both = at(1) << 32 | at(0);
    u64 result = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned selector = static_cast<unsigned>(at(2) >> 4 * i & 15);
      u64 byte = both >> 8 * (selector & 7) & 0xff;
      if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
      result |= byte << 8 * i;
    }
    return value(result);
  }

  // Conversions, and comparisons: their second type is that of the sources.
  [[nodiscard]] Outcome conversion() const {
    const Type from = s_.type(1);
    switch (s_.op) {
      case Op::mov:
        return value(at(0));
      case Op::cvt_int:
        return cut(extended(at(0), from));
      case Op::cvt_sat_u8:
      case Op::cvt_sat_u16:
      case Op::cvt_sat_u32:
      case Op::cvt_sat_u64:
      case Op::cvt_sat_s8:
      case Op::cvt_sat_s16:
      case Op::cvt_sat_s32:
      case Op::cvt_sat_s64:
        return value(clamped(extended(at(0), from), is_signed(from), type_));
      case Op::set_bits:
      case Op::set_unsigned:
      case Op::set_signed:
      case Op::set_bits_bool:
      case Op::set_unsigned_bool:
      case Op::set_signed_bool: {
        const auto holds = compared(s_.get(Field::Comparison), at(0), at(1), from);
        if (!holds) return {};
        const bool with = sources_ > 2 && at(2) != 0;
        if (!combined(s_.get(Field::BoolOp), *holds, with)) return value(0);
        return value(type_ == Type::f32 ? 0x3f800000 : 0xffffffff);
      }
      default:
        return {};
    }
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
        return has(2) ? copy(static_cast<s64>(extended(at(2), Type::s32)) >= 0 ? 0 : 1) : Outcome{};
      case Op::cvt_int:
        // Widths of registers may differ from those of the types: whoever copies must look.
        return bits(s_.type(1)) == width_ ? copy(0) : Outcome{};
      default:
        break;
    }
    if (sources_ < 2) return {};
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

  // What a comparison gives, from values or from the ends of the range, and what a predicate
  // behind it leaves of that.
  [[nodiscard]] Outcome comparison() const {
    std::optional<bool> holds = ordered();
    const Modifier boolean = s_.get(Field::BoolOp);
    if (boolean == Modifier::none) return holds ? both(*holds, !*holds) : Outcome{};
    if (!holds) {
      // Both halves of `p|q` are the same where the predicate decides alone.
      if (boolean == Modifier::and_ && is(2, 0)) return both(false, false);
      if (boolean == Modifier::or_ && is(2, 1)) return both(true, true);
      return {};
    }
    if (has(2)) {
      const bool with = at(2) != 0;
      return both(combined(boolean, *holds, with), combined(boolean, !*holds, with));
    }
    if (destinations_ != 1) return {};
    if (boolean == Modifier::and_) return *holds ? copy(2) : value(0);
    if (boolean == Modifier::or_) return *holds ? value(1) : copy(2);
    return *holds ? opposite(2) : copy(2);
  }
  [[nodiscard]] Outcome both(bool first, bool second) const {
    Outcome outcome = value(first ? 1 : 0);
    outcome.values[1] = second ? 1 : 0;
    return outcome;
  }

  [[nodiscard]] std::optional<bool> ordered() const {
    const Modifier comparison = s_.get(Field::Comparison);
    if (same(0, 1)) return compared(comparison, 0, 0, type_);
    if (has(0) && has(1)) return compared(comparison, at(0), at(1), type_);
    const u64 least = is_signed(type_) ? u64{1} << (width_ - 1) : 0;
    const u64 most = is_signed(type_) ? least - 1 : ones();
    // `least <= x` and `x <= most` hold for every x, in each way to write them; `x < least` never.
    const bool no_less = comparison == Modifier::ge || comparison == Modifier::hs;
    const bool no_more = comparison == Modifier::le || comparison == Modifier::ls;
    const bool less = comparison == Modifier::lt || comparison == Modifier::lo;
    const bool more = comparison == Modifier::gt || comparison == Modifier::hi;
    if ((no_less && (is(1, least) || is(0, most))) || (no_more && (is(1, most) || is(0, least))))
      return true;
    if ((less && (is(1, least) || is(0, most))) || (more && (is(1, most) || is(0, least))))
      return false;
    return std::nullopt;
  }

  const Instruction& s_;
  std::span<const Operand> operands_;
  std::span<const std::optional<u64>> known_;
  std::array<std::size_t, 6> places_{};
  std::size_t sources_ = 0, destinations_ = 0;
  bool fits_ = true, names_;
  Type type_ = Type::none;
  unsigned width_ = 0;
};

// Without any value, results follow only from one register that stands twice, and for copies.
bool may_follow(const Function& function, const Instruction& s,
                std::span<const std::optional<u64>> known) {
  if (s.op == Op::mov || s.op == Op::cvt_int) return true;
  const auto operands = function.operands_of(s);
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i] || (i > 1 && operands[i] == operands[i - 1])) return true;  // 0 is written
  }
  return false;
}

}  // namespace

Outcome evaluate(const Function& function, const Instruction& instruction,
                 std::span<const std::optional<u64>> known, bool names) {
  return evaluate(function, instruction, OperandSpecs(function, instruction), known, names);
}

Outcome evaluate(const Function& function, const Instruction& instruction,
                 const OperandSpecs& specs, std::span<const std::optional<u64>> known, bool names) {
  if (instruction.kind != StatementKind::Instruction) return {};
  const unsigned flags = static_cast<unsigned>(info(instruction.op).flags);
  if ((flags & ~static_cast<unsigned>(Flag::Commutative)) != 0) return {};
  if (!may_follow(function, instruction, known)) return {};
  return Evaluator(function, instruction, specs, known, names).run();
}

}  // namespace ptxgen::inline v0::analysis
