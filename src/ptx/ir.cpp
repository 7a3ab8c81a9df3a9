// src/ptx/ir.cpp - accessors of the IR
#include "ptxgen/ptx/ir.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "ptx/row_shape.hpp"

namespace ptxgen::inline v0::ptx {

namespace {

constexpr Version version(unsigned major, unsigned minor) {
  return {static_cast<std::uint8_t>(major), static_cast<std::uint8_t>(minor)};
}

constexpr SpecialInfo kSpecial[] = {
#define PTXGEN_SPECIAL(id, text, type, components, major, minor, sm) \
  {text, Type::type, components, {version(major, minor), sm, Variant::None}},
#include "ptxgen/ptx/special_registers.def"
};

constexpr DirectiveInfo kDirectives[] = {
#define PTXGEN_DIRECTIVE(id, text, min, max, major, minor, sm) \
  {text, min, max, {version(major, minor), sm, Variant::None}},
#include "ptxgen/ptx/directives.def"
};

}  // namespace

const SpecialInfo& info(SpecialRegister reg) noexcept {
  return kSpecial[static_cast<std::size_t>(reg)];
}
std::span<const SpecialInfo> special_registers() noexcept { return kSpecial; }

const DirectiveInfo& info(DirectiveKind directive) noexcept {
  return kDirectives[static_cast<std::size_t>(directive)];
}
std::span<const DirectiveInfo> directives() noexcept { return kDirectives; }

Operand Operand::f32(float value) noexcept {
  Operand o;
  o.kind = OperandKind::Float32;
  o.value = std::bit_cast<std::uint32_t>(value);
  return o;
}

Operand Operand::f64(double value) noexcept {
  Operand o;
  o.kind = OperandKind::Float64;
  o.value = std::bit_cast<std::uint64_t>(value);
  return o;
}

Modifier Instruction::get(Field field) const noexcept {
  if (kind != StatementKind::Instruction) return Modifier::none;
  const OpInfo& row = info(op);
  for (std::size_t i = 0; i < row.slot_count; ++i) {
    if (row.slots[i].field == field && modifiers[i] != Modifier::none) return modifiers[i];
  }
  return Modifier::none;
}

bool Instruction::set(Field field, Modifier modifier) noexcept {
  const OpInfo& row = info(op);
  for (std::size_t i = 0; i < row.slot_count; ++i) {
    if (row.slots[i].field != field) continue;
    if (modifier == Modifier::none ? !row.slots[i].optional : !allows(row.slots[i], modifier))
      continue;
    modifiers[i] = modifier;
    return true;
  }
  return false;
}

Type Instruction::type(std::size_t index) const noexcept {
  if (kind != StatementKind::Instruction) return Type::none;
  const OpInfo& row = info(op);
  return index < row.type_count ? as_type(modifiers[row.type_slots[index]]) : Type::none;
}

std::uint64_t size_in_bytes(const Variable& variable) noexcept {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t size = std::uint64_t{bytes(variable.type)} * variable.vector;
  for (const std::uint64_t dimension : variable.dimensions) {
    if (dimension != 0 && size > kMax / dimension) return kMax;
    size *= dimension;
  }
  return size;
}

std::uint32_t natural_alignment(const Variable& variable) noexcept {
  if (variable.alignment != 0) return variable.alignment;
  return std::max(1u, bytes(variable.type) * variable.vector);
}

const Function* Module::find_function(std::string_view wanted) const noexcept {
  const Function* found = nullptr;
  for (const Function& function : functions) {
    if (names[function.name] != wanted) continue;
    if (!function.declaration) return &function;
    if (found == nullptr) found = &function;
  }
  return found;
}

Function* Module::find_function(std::string_view wanted) noexcept {
  return const_cast<Function*>(std::as_const(*this).find_function(wanted));
}

}  // namespace ptxgen::inline v0::ptx
