// src/optimize/loop_split/front.hpp - emits code before a split loop
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "analysis/ordinal.hpp"
#include "optimize/edits.hpp"

namespace ptxgen::inline v0::optimize {

/// Writes statements before a place of the body, on numbers of which some are constants: what is
/// constant is computed here.
class SplitFront {
 public:
  SplitFront(Edits& edits, std::uint32_t at, unsigned bits, std::uint32_t like)
      : edits_(edits), at_(at), bits_(bits), like_(like) {}

  struct Number {
    bool constant = true;
    std::uint64_t value = 0;
    ptx::Operand operand;
  };
  Number number(std::uint64_t value) const { return {true, value & mask(), {}}; }
  Number number(const ptx::Operand& o) const {
    if (o.kind == ptx::OperandKind::Integer) return number(o.value);
    return {false, 0, o};
  }
  ptx::Operand operand(const Number& n) const {
    if (!n.constant) return n.operand;
    const std::uint64_t sign = std::uint64_t{1} << (bits_ - 1);
    return ptx::Operand::integer(static_cast<std::int64_t>((n.value ^ sign) - sign));
  }

  Number xor_(const Number& a, std::uint64_t key) {
    if (key == 0) return a;
    if (a.constant) return number(a.value ^ key);
    return result(ptx::Op::xor_, ptx::untyped(bits_), a, number(key));
  }
  Number add(const Number& a, const Number& b) {
    if (a.constant && b.constant) return number(a.value + b.value);
    if (b.constant && b.value == 0) return a;
    return result(ptx::Op::add, unsigned_type(), a, b);
  }
  Number sub(const Number& a, const Number& b) {
    if (a.constant && b.constant) return number(a.value - b.value);
    if (b.constant && b.value == 0) return a;
    return result(ptx::Op::sub, unsigned_type(), a, b);
  }
  Number min(const Number& a, const Number& b) {
    if (a.constant && b.constant) return number(std::min(a.value, b.value));
    return result(ptx::Op::min, unsigned_type(), a, b);
  }
  Number max(const Number& a, const Number& b) {
    if (a.constant && b.constant) return number(std::max(a.value, b.value));
    return result(ptx::Op::max, unsigned_type(), a, b);
  }
  // a relation b ? x : y
  Number choose(const Number& a, ptx::Modifier relation, const Number& b, const Number& x,
                const Number& y) {
    if (a.constant && b.constant) {
      const bool holds = relation == ptx::Modifier::le ? a.value <= b.value : a.value >= b.value;
      return holds ? x : y;
    }
    const ptx::Register p = compare(ptx::Op::setp_unsigned, unsigned_type(), relation, a, b);
    return into(ptx::Op::selp, ptx::untyped(bits_), {operand(x), operand(y), ptx::Operand::reg(p)});
  }
  Number result(ptx::Op op, ptx::Type type, const Number& a, const Number& b) {
    return into(op, type, {operand(a), operand(b)});
  }
  ptx::Register compare(ptx::Op op, ptx::Type type, ptx::Modifier relation, const Number& a,
                        const Number& b) {
    const ptx::Register p = edits_.new_register(ptx::Type::pred);
    put(edits_.make(op, {relation, ptx::as_modifier(type)},
                    {ptx::Operand::reg(p), operand(a), operand(b)}, like_));
    return p;
  }
  ptx::Type unsigned_type() const {
    return bits_ == 64 ? ptx::Type::u64 : bits_ == 32 ? ptx::Type::u32 : ptx::Type::u16;
  }
  ptx::Type signed_type() const {
    return bits_ == 64 ? ptx::Type::s64 : bits_ == 32 ? ptx::Type::s32 : ptx::Type::s16;
  }
  std::uint64_t mask() const { return analysis::Ordinal{bits_, false, false}.mask(); }
  void put(const ptx::Instruction& s) { edits_.insert_before(at_, s); }

 private:
  Number into(ptx::Op op, ptx::Type type, std::initializer_list<ptx::Operand> sources) {
    const ptx::Register d = edits_.new_register(ptx::untyped(bits_));
    std::vector<ptx::Operand> operands{ptx::Operand::reg(d)};
    operands.insert(operands.end(), sources.begin(), sources.end());
    const ptx::Modifier modifiers[] = {ptx::as_modifier(type)};
    put(edits_.make(op, modifiers, operands, like_));
    return {false, 0, ptx::Operand::reg(d)};
  }

  Edits& edits_;
  std::uint32_t at_;
  unsigned bits_;
  std::uint32_t like_;
};

}  // namespace ptxgen::inline v0::optimize
