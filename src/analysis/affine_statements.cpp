// src/analysis/affine_statements.cpp - affine forms of instruction results
#include <algorithm>

#include "analysis/affine_solver.hpp"
#include "analysis/uniformity_sources.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;

namespace {

bool is_integer(Type type) {
  const TypeKind k = kind(type);
  return k == TypeKind::Unsigned || k == TypeKind::Signed || k == TypeKind::Bits ||
         k == TypeKind::Predicate;
}
bool is_signed(Type type) { return kind(type) == TypeKind::Signed; }

// The same value in every read by one thread.
bool is_stable(SpecialRegister reg) {
  return reg == SpecialRegister::laneid || reg == SpecialRegister::tid ||
         of_special(reg, 1, {}) >= Agreement::Block;
}

// The bits that `by` shifts by, at most 64.
std::optional<unsigned> shift_amount(const AffineForm& by) {
  if (!by.is_constant()) return std::nullopt;
  const std::uint64_t value = pattern(static_cast<std::uint64_t>(by.constant), 32);
  return static_cast<unsigned>(std::min<std::uint64_t>(value, 64));
}

}  // namespace

// --- operands -----------------------------------------------------------------------------------

std::optional<AffineForm> AffineSolver::special(const Operand& o, unsigned bits) {
  const auto reg = static_cast<SpecialRegister>(o.id);
  if (!is_stable(reg)) return std::nullopt;
  AffineSymbol s;
  s.agreement = of_special(reg, o.component, block_shape(function_, options_));
  s.bits = static_cast<std::uint8_t>(ptx::bits(info(reg).type));
  s.component = static_cast<std::uint8_t>(o.component == 0 ? 0 : o.component - 1);
  const bool exact = r_.block_.kind == BlockBounds::Kind::Exact;
  if (info(reg).components != 0 && o.component == 4) return constant_form(0, bits);
  switch (reg) {
    case SpecialRegister::tid:
      if (s.component < 3 && r_.block_.size[s.component] == 1) return constant_form(0, bits);
      s.kind = Kind::Thread;
      break;
    case SpecialRegister::ntid:
      if (exact) return constant_form(r_.block_.size[s.component], bits);
      s.kind = Kind::BlockShape;
      break;
    case SpecialRegister::ctaid:
      s.kind = Kind::Block;
      break;
    case SpecialRegister::nctaid:
      s.kind = Kind::GridShape;
      break;
    case SpecialRegister::laneid:
      s.kind = Kind::Lane;
      break;
    default:
      s.kind = Kind::Special;
      s.id = o.id;
      s.component = o.component;
  }
  return widened(symbol_form(symbol(s), s.bits), bits, false);
}

std::optional<AffineForm> AffineSolver::operand(std::uint32_t statement, const Operand& o,
                                                unsigned bits) {
  switch (o.kind == OperandKind::Memory ? o.base : o.kind) {
    case OperandKind::Integer:
      return constant_form(o.offset(), bits);
    case OperandKind::Special:
      return special(o, bits);
    case OperandKind::Symbol: {
      AffineSymbol s;
      s.kind = Kind::Address;
      s.id = o.id;
      s.agreement = of_symbol(module_, function_, o.id);
      return sum(symbol_form(symbol(s), bits), constant_form(o.offset(), bits));
    }
    case OperandKind::Register: {
      if (o.component != 0) return std::nullopt;
      const std::uint32_t reg = r_.index_->find(o.as_register());
      const std::uint32_t version = reg == kNone ? kNone : versions_.read(statement, reg);
      if (version == kNone) return std::nullopt;
      AffineForm form = r_.versions_forms_[version];
      // An instruction takes the low bits of a wider register.
      form = form.bits > bits ? resized(form, bits) : widened(form, bits, false);
      if (o.negated) form = negation(form);
      if (o.kind == OperandKind::Memory) form = sum(form, constant_form(o.offset(), bits));
      return form;
    }
    default:
      return std::nullopt;
  }
}

// --- instructions -------------------------------------------------------------------------------

std::optional<AffineForm> AffineSolver::arithmetic(const Instruction& s,
                                                   std::span<const AffineForm> x, unsigned bits) {
  const bool sign = is_signed(s.type());
  const bool low = s.get(Field::MulPart) != Modifier::hi;
  switch (s.op) {
    case Op::mov:
    case Op::cvta:
    case Op::cvta_to:
    case Op::mapa:
      return x[0];
    case Op::add:
      return sum(x[0], x[1]);
    case Op::sub:
      return sum(x[0], x[1], -1);
    case Op::neg:
      return scaled(x[0], -1);
    case Op::abs:
      if (!is_number(x[0], true) || r_.range(x[0], r_.block_).min < 0) return std::nullopt;
      return x[0];
    case Op::mul:
      if (!low) return std::nullopt;
      return product(x[0], x[1]);
    case Op::mad: {
      const auto form = low ? product(x[0], x[1]) : std::nullopt;
      if (!form) return std::nullopt;
      return sum(*form, x[2]);
    }
    case Op::mul_wide:
    case Op::mad_wide: {
      const auto form = product(widened(x[0], bits, sign), widened(x[1], bits, sign));
      if (!form) return std::nullopt;
      return s.op == Op::mul_wide ? *form : sum(*form, x[2]);
    }
    case Op::div:
    case Op::rem:
      return division(s, x);
    case Op::min:
      return smaller(x[0], x[1], sign, Operation::Minimum);
    case Op::max:
      return smaller(x[0], x[1], sign, Operation::Maximum);
    case Op::shl:
    case Op::shr:
      return shift(s, x, bits);
    case Op::bfe:
      return bit_field(s, x, bits);
    case Op::and_:
      return bit_and(x[0], x[1]);
    case Op::or_:
      return bit_or(x[0], x[1], Operation::Or);
    case Op::xor_:
      return bit_or(x[0], x[1], Operation::Xor);
    case Op::not_:
      return negation(x[0]);
    case Op::selp:
      return selected(x[2], x[0], x[1]);
    case Op::cvt_int:
      return conversion(s, x[0], bits);
    default:
      return std::nullopt;
  }
}

std::optional<AffineForm> AffineSolver::division(const Instruction& s,
                                                 std::span<const AffineForm> x) {
  const bool sign = is_signed(s.type());
  if (!x[1].is_constant() || x[1].constant <= 0) return std::nullopt;
  // Towards zero: rounding down where nothing is negative.
  if (sign && (!is_number(x[0], true) || r_.range(x[0], r_.block_).min < 0)) return std::nullopt;
  if (s.op == Op::rem) return remainder(x[0], x[1].constant);
  return quotient(x[0], x[1].constant, sign);
}

std::optional<AffineForm> AffineSolver::shift(const Instruction& s, std::span<const AffineForm> x,
                                              unsigned bits) {
  const bool sign = is_signed(s.type());
  const auto by = shift_amount(x[1]);
  if (!by) {
    const AffineForm operands[] = {x[0], x[1]};
    return operation(s.op == Op::shl ? Operation::ShiftLeft : Operation::ShiftRight, operands, bits,
                     s.op == Op::shr && sign);
  }
  if (s.op == Op::shl)
    return *by >= bits ? constant_form(0, bits) : scaled(x[0], std::int64_t{1} << *by);
  // A sign that is shifted out fills everything.
  const unsigned right = sign ? std::min(*by, bits - 1) : *by;
  if (right >= bits) return constant_form(0, bits);
  if (right >= 63) return std::nullopt;
  return quotient(x[0], std::int64_t{1} << right, sign);
}

std::optional<AffineForm> AffineSolver::bit_field(const Instruction& s,
                                                  std::span<const AffineForm> x, unsigned bits) {
  const auto from = shift_amount(x[1]), count = shift_amount(x[2]);
  if (is_signed(s.type()) || !from || !count || *from + *count > bits || *count == 0 ||
      *from >= 63 || *count >= 63)
    return std::nullopt;
  return remainder(quotient(x[0], std::int64_t{1} << *from, false), std::int64_t{1} << *count);
}

// The low bits of the source's type, as a number, in those of the destination's.
AffineForm AffineSolver::conversion(const Instruction& s, const AffineForm& source, unsigned bits) {
  const Type type = s.type(), from = s.type(1);
  const AffineForm part = resized(source, ptx::bits(from));
  const AffineForm number =
      widened(part, std::max(ptx::bits(type), ptx::bits(from)), is_signed(from));
  return widened(resized(number, ptx::bits(type)), bits, is_signed(type));
}

std::optional<AffineForm> AffineSolver::comparison(const Instruction& s, std::size_t at,
                                                   std::span<const AffineForm> x) {
  AffineForm first = compared(s.get(Field::Comparison), x[0], x[1], is_signed(s.type()));
  if (at == 1) first = negation(first);
  if (!s.has(Field::BoolOp)) return first;
  switch (s.get(Field::BoolOp)) {
    case Modifier::and_:
      return bit_and(first, x[2]);
    case Modifier::or_:
      return bit_or(first, x[2], Operation::Or);
    case Modifier::xor_:
      return bit_or(first, x[2], Operation::Xor);
    default:
      return std::nullopt;
  }
}

std::optional<AffineForm> AffineSolver::parameter(const Instruction& s, std::size_t element,
                                                  unsigned bits) {
  if (!function_.entry || (s.op != Op::ld) || space_of(s.get(Field::Space)) != Space::Param)
    return std::nullopt;
  const Type type = s.type();
  if (!is_integer(type)) return std::nullopt;
  for (const Operand& o : function_.operands_of(s)) {
    if (o.kind != OperandKind::Memory || o.base != OperandKind::Symbol) continue;
    if (o.id >= module_.symbols.size()) return std::nullopt;
    const ptx::Symbol& named = module_.symbols[o.id];
    if (named.kind != ptx::SymbolKind::Parameter || named.index >= function_.parameters.size())
      return std::nullopt;
    AffineSymbol parameter;
    parameter.kind = Kind::Parameter;
    parameter.agreement = Agreement::Grid;
    parameter.id = named.index;
    parameter.offset =
        static_cast<std::uint32_t>(o.value) + static_cast<std::uint32_t>(element) * bytes(type);
    parameter.bits = static_cast<std::uint8_t>(ptx::bits(type));
    parameter.is_signed = is_signed(function_.parameters[named.index].type);
    return widened(symbol_form(symbol(parameter), parameter.bits), bits, is_signed(type));
  }
  return std::nullopt;
}

std::optional<AffineForm> AffineSolver::result(std::uint32_t statement, std::size_t at,
                                               std::size_t element, unsigned bits) {
  const Instruction& s = function_.body[statement];
  if (s.kind != StatementKind::Instruction || writes_carry(s) || reads_carry(s))
    return std::nullopt;
  if (has(info(s.op).flags, Flag::ReadsMemory)) return parameter(s, element, bits);
  std::vector<AffineForm> sources;
  const auto operands = function_.operands_of(s);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const OperandSpec* spec = operand_spec(function_, s, i);
    if (spec == nullptr) return std::nullopt;
    if (spec->role == OperandRole::Destination) continue;
    const Type wanted = operand_type(s, *spec);
    const bool address = operands[i].kind == OperandKind::Symbol;
    if (!is_integer(wanted)) return std::nullopt;
    // Relaxed operands (cvt) may be wider than their type: use the full width.
    const auto form =
        operand(statement, operands[i], address ? bits : std::max(1u, ptx::bits(wanted)));
    if (!form) return std::nullopt;
    sources.push_back(*form);
  }
  if (s.has(Field::Comparison)) {
    if (info(s.op).mnemonic != "setp" || sources.size() < 2) return std::nullopt;
    return comparison(s, at, sources);
  }
  if (at != 0 || sources.empty() || !is_integer(s.type())) return std::nullopt;
  const std::size_t wanted = info(s.op).required_operands;
  if (sources.size() + 1 < wanted) return std::nullopt;
  return arithmetic(s, sources, bits);
}

// Numerous terms, or operations nested so deep that work on them would not stay near-linear.
bool AffineSolver::too_complex(const AffineForm& form) const {
  constexpr unsigned kDeepest = 8;
  return too_big(form) || std::ranges::any_of(form.terms, [&](const AffineTerm& term) {
           return std::ranges::any_of(term.symbols, [&](std::uint32_t factor) {
             return factor != kNone && r_.symbols_[factor].depth > kDeepest;
           });
         });
}

// --- versions -----------------------------------------------------------------------------------

AffineForm AffineSolver::value_symbol(std::uint32_t version) {
  if (const std::uint32_t known = value_symbols_[version]; known != kNone)
    return symbol_form(known, r_.symbols_[known].bits);
  const Version& v = versions_[version];
  const Register reg = (*r_.index_)[v.reg];
  const Type type = function_.type_of(reg);
  AffineSymbol s;
  s.kind = Kind::Value;
  s.id = version;
  s.bits = static_cast<std::uint8_t>(type == Type::pred ? 1u : std::clamp(bits(type), 1u, 64u));
  s.agreement = uniformity_.of(v.reg);
  s.loop = cfg_.loops().innermost(v.block);
  if (v.kind == Version::Kind::Write) {
    const Instruction& writer = function_.body[v.statement];
    s.is_signed = writer.kind == StatementKind::Instruction && is_signed(writer.type());
  }
  value_symbols_[version] = new_symbol(s);
  return symbol_form(value_symbols_[version], s.bits);
}

// Lanes may agree on a result (`tid.x / 32`) though they do not on its operands.
void AffineSolver::agree(const AffineForm& form, Agreement agreement) {
  if (form.constant != 0 || form.terms.size() != 1) return;
  const AffineTerm& term = form.terms[0];
  if (term.coefficient != 1 || term.symbols[1] != kNone) return;
  AffineSymbol& s = r_.symbols_[term.symbols[0]];
  if (s.kind == Kind::Operation) s.agreement = std::max(s.agreement, agreement);
}

AffineForm AffineSolver::written(std::uint32_t version) {
  const Version& v = versions_[version];
  if (v.kind != Version::Kind::Write) return value_symbol(version);
  const Instruction& s = function_.body[v.statement];
  const Register reg = (*r_.index_)[v.reg];
  const Type type = function_.type_of(reg);
  if (!is_integer(type) || function_.registers[reg.decl.value].vector != 1)
    return value_symbol(version);
  const unsigned width = type == Type::pred ? 1 : bits(type);
  // Which of the results it is.
  std::size_t at = 0, element = 0, found = 0;
  const auto operands = function_.operands_of(s);
  std::size_t destination = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const OperandSpec* spec = operand_spec(function_, s, i);
    if (spec == nullptr || spec->role != OperandRole::Destination) continue;
    if (operands[i].kind == OperandKind::Register && operands[i].as_register() == reg) {
      at = destination;
      ++found;
    } else if (operands[i].kind == OperandKind::Vector) {
      const auto elements = function_.elements(operands[i]);
      for (std::size_t e = 0; e < elements.size(); ++e) {
        if (elements[e].kind != OperandKind::Register || elements[e].as_register() != reg) continue;
        at = destination;
        element = e;
        ++found;
      }
    }
    ++destination;
  }
  std::optional<AffineForm> form;
  if (found == 1) form = result(v.statement, at, element, width);
  if (!form || form->bits != width || too_complex(*form)) return value_symbol(version);
  if (!v.partial) {
    agree(*form, uniformity_.of(v.reg));
    return *form;
  }
  if (v.previous == kNone || !s.guard.present()) return value_symbol(version);
  Operand predicate = Operand::reg(s.guard.predicate);
  const auto guard = operand(v.statement, predicate, 1);
  if (!guard) return value_symbol(version);
  const AffineForm& old = r_.versions_forms_[v.previous];
  if (old.bits != width) return value_symbol(version);
  AffineForm chosen = selected(s.guard.negated ? negation(*guard) : *guard, *form, old);
  return too_complex(chosen) ? value_symbol(version) : chosen;
}

}  // namespace ptxgen::inline v0::analysis
