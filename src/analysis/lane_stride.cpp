// src/analysis/lane_stride.cpp - differences of values between neighbouring lanes
#include "ptxgen/analysis/lane_stride.hpp"

#include <algorithm>
#include <string_view>

#include "analysis/uniformity_sources.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;

namespace {

// Arithmetic of registers: modulo 2^64.
std::int64_t sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

bool is_integer(Type type) {
  const TypeKind k = kind(type);
  return k == TypeKind::Unsigned || k == TypeKind::Signed || k == TypeKind::Bits;
}

}  // namespace

class LaneStrideSolver {
 public:
  using Stride = LaneStrides::Stride;
  using Kind = LaneStrides::Kind;

  LaneStrideSolver(LaneStrides& result, const Function& function, const RegisterIndex& index,
                   const Uniformity& uniformity)
      : result_(result),
        function_(function),
        index_(index),
        uniformity_(uniformity),
        uses_(function, index) {}

  void solve() {
    std::vector<std::uint32_t> open;
    const auto lower = [&](std::uint32_t reg, Stride to) {
      if (reg == kNone || to.kind == Kind::Unset) return;
      Stride& known = result_.strides_[reg];
      if (known.kind == Kind::Unknown) return;
      if (known.kind == Kind::Constant && to.kind == Kind::Constant && known.value == to.value)
        return;
      known = known.kind == Kind::Unset ? to : Stride{Kind::Unknown, 0};
      open.push_back(reg);
    };
    const auto evaluate = [&](const Instruction& s) {
      if (s.kind != StatementKind::Instruction) return;
      const Stride stride = result_of(s);
      for_each_access(function_, s, [&](const RegisterAccess& a) {
        if (!a.write) return;
        lower(index_.find(a.reg),
              a.operand == 0 && a.component == 0 ? stride : unless_equal(a.reg));
      });
    };
    for (std::uint32_t reg = 0; reg < index_.size(); ++reg) {
      const auto uses = uses_.of(reg);
      const bool written = !uses.empty() && std::any_of(uses.begin(), uses.end(),
                                                        [](const auto& use) { return use.write; });
      if (uniformity_.chosen_by_thread(reg) || !written) lower(reg, {Kind::Unknown, 0});
    }
    for (const Instruction& s : function_.body) evaluate(s);
    while (!open.empty()) {
      const std::uint32_t reg = open.back();
      open.pop_back();
      for (const RegisterUses::Use& use : uses_.of(reg)) {
        if (!use.write) evaluate(function_.body[use.statement]);
      }
    }
  }

 private:
  Stride unless_equal(Register reg) const {
    const std::uint32_t found = index_.find(reg);
    return found != kNone && uniformity_.of(found) >= Agreement::Block ? Stride{Kind::Constant, 0}
                                                                       : Stride{Kind::Unknown, 0};
  }

  Stride result_of(const Instruction& s) const {
    const auto operands = function_.operands_of(s);
    const std::string_view mnemonic = info(s.op).mnemonic;
    if (operands.empty() || operands[0].kind != OperandKind::Register) return {Kind::Unknown, 0};
    const auto at = [&](std::size_t i) { return result_.stride(operands[i]); };
    const auto plus = [](Stride a, Stride b, std::int64_t sign) -> Stride {
      if (a.kind == Kind::Unknown || b.kind == Kind::Unknown) return {Kind::Unknown, 0};
      if (a.kind == Kind::Unset || b.kind == Kind::Unset) return {};
      return {Kind::Constant, sum(a.value, product(sign, b.value))};
    };
    const auto times = [&](std::size_t x, std::size_t y) -> Stride {
      const Stride a = at(x), b = at(y);
      if (a.kind == Kind::Unknown || b.kind == Kind::Unknown) return {Kind::Unknown, 0};
      if (a.kind == Kind::Unset || b.kind == Kind::Unset) return {};
      if (a.value == 0 && b.value == 0) return {Kind::Constant, 0};
      if (operands[y].kind == OperandKind::Integer)
        return {Kind::Constant, product(a.value, operands[y].offset())};
      if (operands[x].kind == OperandKind::Integer)
        return {Kind::Constant, product(b.value, operands[x].offset())};
      return {Kind::Unknown, 0};
    };
    const bool low = s.get(Field::MulPart) != Modifier::hi;
    const bool integer = is_integer(s.type()) && !s.has(Field::Saturate);
    // A guard that threads answer differently leaves an older value in some.
    if (s.guard.present() &&
        result_.stride(Operand::reg(s.guard.predicate)).kind == Kind::Unknown &&
        unless_equal(s.guard.predicate).kind == Kind::Unknown)
      return {Kind::Unknown, 0};
    if (integer && operands.size() == 2 &&
        (mnemonic == "mov" || mnemonic == "cvta" || (mnemonic == "cvt" && is_integer(s.type(1)))) &&
        operands[1].kind != OperandKind::Vector)
      return at(1);
    if (integer && !reads_carry(s)) {
      if (mnemonic == "add" && operands.size() == 3) return plus(at(1), at(2), 1);
      if (mnemonic == "sub" && operands.size() == 3) return plus(at(1), at(2), -1);
      if (mnemonic == "mul" && low) return times(1, 2);
      if (mnemonic == "mad" && low) return plus(times(1, 2), at(3), 1);
    }
    if (mnemonic == "shl" && operands[2].kind == OperandKind::Integer) {
      const Stride a = at(1);
      if (operands[2].value >= bits(s.type())) return {Kind::Constant, 0};
      return a.kind == Kind::Constant
                 ? Stride{Kind::Constant, product(a.value, std::int64_t{1} << operands[2].value)}
                 : a;
    }
    return unless_equal(operands[0].as_register());
  }

  LaneStrides& result_;
  const Function& function_;
  const RegisterIndex& index_;
  const Uniformity& uniformity_;
  RegisterUses uses_;
};

LaneStrides::LaneStrides(const Function& function, const RegisterIndex& index,
                         const Uniformity& uniformity)
    : index_(&index), strides_(index.size()) {
  LaneStrideSolver(*this, function, index, uniformity).solve();
}

LaneStrides::Stride LaneStrides::stride(const Operand& o) const {
  const OperandKind kind = o.kind == OperandKind::Memory ? o.base : o.kind;
  switch (kind) {
    case OperandKind::Register: {
      const std::uint32_t reg = index_->find(o.as_register());
      return reg == kNone || o.component != 0 ? Stride{Kind::Unknown, 0} : strides_[reg];
    }
    case OperandKind::Special: {
      const auto reg = static_cast<SpecialRegister>(o.id);
      if (reg == SpecialRegister::tid && o.component == 1) return {Kind::Constant, 1};
      if (reg == SpecialRegister::tid && o.component >= 2) return {Kind::Constant, 0};
      return of_special(reg, o.component, {}) >= Agreement::Block ? Stride{Kind::Constant, 0}
                                                                  : Stride{Kind::Unknown, 0};
    }
    case OperandKind::Integer:
    case OperandKind::Symbol:
      return {Kind::Constant, 0};
    default:
      return {Kind::Unknown, 0};
  }
}

std::optional<std::int64_t> LaneStrides::of(const Operand& operand) const {
  const Stride found = stride(operand);
  if (found.kind != Kind::Constant) return std::nullopt;
  return found.value;
}

}  // namespace ptxgen::inline v0::analysis
