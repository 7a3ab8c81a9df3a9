// src/ptx/parser_opcodes.cpp - candidate rows of an opcode
#include "ptx/parser_opcodes.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "ptx/parser_names.hpp"
#include "ptx/row_shape.hpp"

namespace ptxgen::inline v0::ptx::reading {

namespace {

using ModifierArray = std::array<Modifier, kMaxModifiers>;

// The number of modifiers in `text`; nothing if there are unknown or too many ones.
std::optional<std::size_t> read_modifiers(std::string_view text, ModifierArray& out) {
  std::size_t count = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('.');
    const Modifier modifier = modifier_from_text(text.substr(0, end));
    if (modifier == Modifier::none || count == out.size()) return std::nullopt;
    out[count++] = modifier;
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return count;
}

// Matches modifiers to slots in the order of both. An optional slot takes a modifier it admits,
// unless the rest does not match then.
bool match_in_order(const OpInfo& row, std::size_t slot, std::span<const Modifier> text,
                    ModifierArray& out) {
  if (slot == row.slot_count) return text.empty();
  if (!text.empty() && allows(row.slots[slot], text.front())) {
    out[slot] = text.front();
    if (match_in_order(row, slot + 1, text.subspan(1), out)) return true;
  }
  out[slot] = Modifier::none;
  return row.slots[slot].optional && match_in_order(row, slot + 1, text, out);
}

// Assemblers take the modifiers in any order; each slot gets the first modifier left that it
// admits.
bool match_any_order(const OpInfo& row, std::span<const Modifier> text, ModifierArray& out) {
  std::uint32_t used = 0;
  for (std::size_t slot = 0; slot < row.slot_count; ++slot) {
    out[slot] = Modifier::none;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if ((used >> i & 1) == 0 && allows(row.slots[slot], text[i])) {
        out[slot] = text[i];
        used |= 1u << i;
        break;
      }
    }
    if (out[slot] == Modifier::none && !row.slots[slot].optional) return false;
  }
  return used == (1u << text.size()) - 1;
}

// How closely operands must agree with a row.
enum class Rigour : std::uint8_t { Kinds, Types };

class Fit {
 public:
  Fit(const Module& module, const Function& function, std::span<const Operand> operands)
      : module_(module), function_(function), operands_(operands) {}

  bool fits(const Candidate& candidate, Rigour rigour) {
    candidate_ = &candidate;
    rigour_ = rigour;
    return from(0, 0);
  }

 private:
  // Operands from number `at` against specs from number `spec`; what is optional is tried as there
  // first. A row has few optional operands, so the search is short.
  bool from(std::size_t spec, std::size_t at) {
    const OpInfo& row = *candidate_->row;
    if (spec == row.operand_count) return at == operands_.size();
    const OperandSpec& wanted = row.operands[spec];
    const bool tied = wanted.with != Field::Literal;
    if (tied && !candidate_->prototype.has(wanted.with)) return from(spec + 1, at);
    if (at < operands_.size() && operands_[at].joined == wanted.joined &&
        fits(wanted, operands_[at]) && from(spec + 1, at + 1)) {
      return true;
    }
    return wanted.optional && !tied && from(spec + 1, at);
  }

  bool fits(const OperandSpec& spec, const Operand& o) {
    const unsigned vector = operand_elements(candidate_->prototype, spec);
    if (vector > 0) {
      if (o.kind == OperandKind::Vector) {
        if (o.index != vector) return false;
        const auto elements = function_.elements(o);
        return std::all_of(elements.begin(), elements.end(),
                           [&](const Operand& element) { return fits_plain(spec, element, true); });
      }
      // A vector register is equivalent to its elements.
      if (vector > 1 && o.kind == OperandKind::Register && o.component == 0 &&
          declared(o).vector == vector) {
        return fits_type(spec, declared(o).type);
      }
      return false;
    }
    if (o.kind == OperandKind::Vector && o.index == 1 &&
        takes_list_of_one(candidate_->prototype, spec)) {
      return fits_plain(spec, function_.elements(o)[0], false);
    }
    return fits_plain(spec, o, false);
  }

  bool fits_plain(const OperandSpec& spec, const Operand& o, bool in_vector) {
    // An undeclared name may have been meant as anything.
    if (o.kind == OperandKind::Symbol && module_.symbols[o.id].kind == SymbolKind::Unresolved &&
        spec.role != OperandRole::Memory && spec.role != OperandRole::Immediate) {
      return true;
    }
    switch (spec.role) {
      case OperandRole::Destination:
        if (o.kind == OperandKind::Sink) return spec.sink || in_vector;
        return o.kind == OperandKind::Register && fits_register(spec, o);
      case OperandRole::Value:
        if (o.kind == OperandKind::Symbol) return true;
        [[fallthrough]];
      case OperandRole::Source:
        return fits_source(spec, o);
      case OperandRole::RegisterSource:
        if (o.kind == OperandKind::Sink) return spec.sink;
        return (o.kind == OperandKind::Register && fits_register(spec, o)) ||
               o.kind == OperandKind::Special;
      case OperandRole::Immediate:
        return o.kind == OperandKind::Integer;
      case OperandRole::Predicate:
        return o.kind == OperandKind::Integer ||
               (o.kind == OperandKind::Register && fits_register(spec, o));
      case OperandRole::Memory:
        return o.kind == OperandKind::Memory;
      case OperandRole::Label:
      case OperandRole::Table:
        return o.kind == OperandKind::Label || o.kind == OperandKind::Symbol;
      case OperandRole::Callee:
        return o.kind == OperandKind::Symbol || o.kind == OperandKind::Register;
      case OperandRole::Returns:
      case OperandRole::Arguments:
        return o.kind == OperandKind::List;
    }
    return false;
  }

  bool fits_source(const OperandSpec& spec, const Operand& o) {
    switch (o.kind) {
      case OperandKind::Register:
        return fits_register(spec, o);
      case OperandKind::Special:
        return fits_type(spec, info(static_cast<SpecialRegister>(o.id)).type);
      case OperandKind::Integer:
        return rigour_ == Rigour::Kinds || kind(expected(spec)) != TypeKind::Float;
      case OperandKind::Float32:
      case OperandKind::Float64: {
        const TypeKind wanted = kind(expected(spec));
        return rigour_ == Rigour::Kinds ||
               (wanted != TypeKind::Signed && wanted != TypeKind::Unsigned);
      }
      case OperandKind::Sink:
        return spec.sink;
      default:
        return false;
    }
  }

  const RegisterDecl& declared(const Operand& o) const { return function_.registers[o.id]; }

  bool fits_register(const OperandSpec& spec, const Operand& o) {
    const RegisterDecl& decl = declared(o);
    if (decl.vector > 1 && o.component == 0) return false;
    return fits_type(spec, decl.type);
  }

  bool fits_type(const OperandSpec& spec, Type type) {
    if (rigour_ == Rigour::Kinds) return true;
    const Type wanted = expected(spec);
    if (wanted == Type::none) return true;
    if ((wanted == Type::pred) != (type == Type::pred)) return false;
    if (spec.relaxed ? bits(type) < bits(wanted) : bits(type) != bits(wanted)) return false;
    const auto integer = [](TypeKind k) {
      return k == TypeKind::Signed || k == TypeKind::Unsigned;
    };
    const TypeKind a = kind(wanted);
    const TypeKind b = kind(type);
    return !((integer(a) && b == TypeKind::Float) || (a == TypeKind::Float && integer(b)));
  }

  Type expected(const OperandSpec& spec) const { return operand_type(candidate_->prototype, spec); }

  const Module& module_;
  const Function& function_;
  std::span<const Operand> operands_;
  const Candidate* candidate_ = nullptr;
  Rigour rigour_ = Rigour::Types;
};

}  // namespace

Opcode OpcodeTable::find(std::string_view text) {
  const std::uint32_t hash = hash_of(text.data(), text.size());
  const std::size_t mask = buckets_.size() - 1;
  for (std::size_t i = hash & mask; buckets_[i] != 0; i = (i + 1) & mask) {
    const Opcode& opcode = opcodes_[buckets_[i] - 1];
    if (opcode.hash == hash && opcode.length == text.size() &&
        std::memcmp(opcode.text, text.data(), text.size()) == 0) {
      return opcode;
    }
  }
  return opcodes_[add(text, hash)];
}

std::uint32_t OpcodeTable::add(std::string_view text, std::uint32_t hash) {
  Opcode opcode;
  opcode.text = text.data();
  opcode.length = static_cast<std::uint32_t>(text.size());
  opcode.hash = hash;
  opcode.first = static_cast<std::uint32_t>(candidates_.size());

  const std::size_t dot = text.find('.');
  const std::string_view mnemonic = text.substr(0, dot);
  ModifierArray list{};
  const auto count = read_modifiers(
      dot == std::string_view::npos ? std::string_view{} : text.substr(dot + 1), list);
  const std::span<const Modifier> found(list.data(), count.value_or(0));
  const auto consider = [&](const OpInfo& row, bool matched, const ModifierArray& chosen) {
    if (!matched || opcode.count == 0xffff) return;
    Candidate candidate;
    candidate.row = &row;
    candidate.prototype.op = row.op;
    candidate.prototype.modifiers = chosen;
    candidates_.push_back(candidate);
    ++opcode.count;
  };
  if (count) {
    const auto rows = ops_with_mnemonic(mnemonic);
    for (const Op op : rows) {
      ModifierArray chosen{};
      consider(info(op), match_in_order(info(op), 0, found, chosen), chosen);
    }
    if (opcode.count == 0) {
      for (const Op op : rows) {
        ModifierArray chosen{};
        consider(info(op), match_any_order(info(op), found, chosen), chosen);
      }
    }
  }
  if (opcode.count > 0) {
    const OpInfo& row = *candidates_[opcode.first].row;
    opcode.call = has(row.flags, Flag::Call);
    for (std::size_t i = 0; i < row.operand_count; ++i) {
      const auto bit = static_cast<std::uint16_t>(1u << i);
      if (row.operands[i].role == OperandRole::Label) opcode.label_places |= bit;
      if (row.operands[i].role == OperandRole::Table) opcode.table_places |= bit;
      if (row.operands[i].role == OperandRole::Memory) opcode.memory_places |= bit;
      const ElementCount elements = row.operands[i].elements;
      opcode.texture |= elements == ElementCount::Coordinates;
      opcode.coordinates |= opcode.texture || elements == ElementCount::Dimensions;
    }
  }
  opcodes_.push_back(opcode);
  if (opcodes_.size() * 2 > buckets_.size()) {
    buckets_.assign(buckets_.size() * 2, 0);
    for (std::uint32_t i = 0; i < opcodes_.size(); ++i) place(i);
  } else {
    place(static_cast<std::uint32_t>(opcodes_.size() - 1));
  }
  return static_cast<std::uint32_t>(opcodes_.size() - 1);
}

void OpcodeTable::place(std::uint32_t number) noexcept {
  const std::size_t mask = buckets_.size() - 1;
  std::size_t i = opcodes_[number].hash & mask;
  while (buckets_[i] != 0) i = (i + 1) & mask;
  buckets_[i] = number + 1;
}

const Candidate& choose(std::span<const Candidate> candidates, const Module& module,
                        const Function& function, std::span<const Operand> operands) {
  if (candidates.size() > 1) {
    Fit fit(module, function, operands);
    for (const Rigour rigour : {Rigour::Types, Rigour::Kinds}) {
      for (const Candidate& candidate : candidates) {
        if (fit.fits(candidate, rigour)) return candidate;
      }
    }
  }
  return candidates.front();
}

}  // namespace ptxgen::inline v0::ptx::reading
