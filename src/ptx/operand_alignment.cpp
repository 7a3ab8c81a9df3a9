// src/ptx/operand_alignment.cpp - matching operands to the specifications of a row
#include "ptx/operand_alignment.hpp"

#include <bit>

#include "ptx/row_shape.hpp"
#include "ptx/vector_elements.hpp"
#include "ptxgen/ptx/operand_specs.hpp"

namespace ptxgen::inline v0::ptx {

namespace {

Type twice_as_wide(Type type) {
  switch (type) {
    case Type::u16:
      return Type::u32;
    case Type::u32:
      return Type::u64;
    case Type::s16:
      return Type::s32;
    case Type::s32:
      return Type::s64;
    case Type::b16:
      return Type::b32;
    case Type::b32:
      return Type::b64;
    case Type::b64:
      return Type::b128;
    default:
      return Type::none;
  }
}

// Whether just those operands are there that are so in any case.
bool is_plain(const Instruction& instruction, std::span<const Operand> operands) {
  const RowShape& shape = row_shape(instruction.op);
  if (shape.more || operands.size() != shape.plain) return false;
  for (const Operand& operand : operands) {
    if (operand.joined) return false;
  }
  for (unsigned ties = shape.ties; ties != 0; ties &= ties - 1) {
    if (instruction.modifiers[static_cast<std::size_t>(std::countr_zero(ties))] != Modifier::none)
      return false;
  }
  return true;
}

// Whether the operands are the leading ones of the row and the rest is optional. Optional operands
// among them count only if all are present, since one may be taken for another.
bool are_first(const Instruction& instruction, const OpInfo& row,
               std::span<const Operand> operands) {
  const std::size_t count = operands.size();
  if (count > row.operand_count) return false;
  const bool all = count == row.operand_count;
  for (std::size_t i = 0; i < row.operand_count; ++i) {
    const OperandSpec& spec = row.operands[i];
    const bool there = i < count;
    if (there && operands[i].joined != spec.joined) return false;
    if (spec.with != Field::Literal) {
      if (instruction.has(spec.with) != there) return false;
    } else if (!all && spec.optional == there) {
      return false;
    }
  }
  return true;
}

// So it is most often.
inline bool in_order(const Instruction& instruction, const OpInfo& row,
                     std::span<const Operand> operands) {
  return is_plain(instruction, operands) || are_first(instruction, row, operands);
}

// The same wherever operands that may be missing are.
bool aligned(const Instruction& instruction, const OpInfo& row, std::span<const Operand> operands,
             OperandAlignment& out) {
  const auto tied = [](const OperandSpec& spec) { return spec.with != Field::Literal; };
  const auto required = [&](const OperandSpec& spec) {
    return tied(spec) ? instruction.has(spec.with) : !spec.optional;
  };
  std::size_t still_required = 0;
  for (const OperandSpec& spec : row.operand_specs()) still_required += required(spec);
  std::size_t next = 0;
  for (std::size_t i = 0; i < row.operand_count; ++i) {
    const OperandSpec& spec = row.operands[i];
    const std::size_t left = operands.size() - next;
    if (required(spec)) {
      if (left == 0) return false;
      --still_required;
    } else if (tied(spec)) {
      continue;
    } else if (spec.joined ? left == 0 || !operands[next].joined : left <= still_required) {
      continue;
    }
    if (operands[next].joined != spec.joined) return false;
    out[next++] = static_cast<std::uint8_t>(i);
  }
  return next == operands.size();
}

// n of a shape m64nNkK.
unsigned warpgroup_columns(const Instruction& instruction) noexcept {
  for (const Field field :
       {Field::WarpgroupShapeK8, Field::WarpgroupShapeK16, Field::WarpgroupShapeK32}) {
    const std::string_view shape = name(instruction.get(field));
    constexpr std::string_view kRows = "m64n";
    unsigned columns = 0;
    for (std::size_t i = kRows.size(); i < shape.size() && shape[i] != 'k'; ++i) {
      columns = columns * 10 + static_cast<unsigned>(shape[i] - '0');
    }
    if (columns != 0) return columns;
  }
  return 0;
}

// PTX ISA, tex: three coordinates are written as four, the last of them without meaning.
unsigned texture_coordinates(const Instruction& instruction) noexcept {
  switch (instruction.get(Field::TextureGeometry)) {
    case Modifier::dim_1d:
      return 1;
    case Modifier::dim_2d:
    case Modifier::dim_a1d:
      return 2;
    default:
      return 4;
  }
}

unsigned texture_gradient(const Instruction& instruction) noexcept {
  switch (instruction.get(Field::TextureGeometry)) {
    case Modifier::dim_1d:
    case Modifier::dim_a1d:
      return 1;
    case Modifier::dim_2d:
    case Modifier::dim_a2d:
      return 2;
    default:
      return 4;
  }
}

unsigned counted_elements(const Instruction& instruction, ElementCount count) noexcept {
  const auto dimensions = static_cast<unsigned>(instruction.get(Field::TensorDimensions)) -
                          static_cast<unsigned>(Modifier::dim_1d) + 1;
  switch (count) {
    case ElementCount::HalfColumns:
      return warpgroup_columns(instruction) / 2;
    case ElementCount::QuarterColumns:
      return warpgroup_columns(instruction) / 4;
    case ElementCount::Dimensions:
      return dimensions;
    case ElementCount::Offsets:
      return dimensions - 2;
    case ElementCount::Coordinates:
      return texture_coordinates(instruction);
    case ElementCount::Gradient:
      return texture_gradient(instruction);
    case ElementCount::Fixed:
      break;
  }
  return 0;
}

}  // namespace

bool align_operands(const Instruction& instruction, std::span<const Operand> operands,
                    OperandAlignment& out) noexcept {
  const OpInfo& row = info(instruction.op);
  if (!in_order(instruction, row, operands)) return aligned(instruction, row, operands, out);
  for (std::size_t i = 0; i < operands.size(); ++i) out[i] = static_cast<std::uint8_t>(i);
  return true;
}

const OperandSpec* operand_spec(const Function& function, const Instruction& instruction,
                                std::size_t i) noexcept {
  if (instruction.kind != StatementKind::Instruction) return nullptr;
  OperandAlignment alignment;
  const auto operands = function.operands_of(instruction);
  const OpInfo& row = info(instruction.op);
  if (i >= operands.size()) return nullptr;
  if (in_order(instruction, row, operands)) return &row.operands[i];
  if (!aligned(instruction, row, operands, alignment)) return nullptr;
  return &row.operands[alignment[i]];
}

OperandSpecs::OperandSpecs(const Function& function, const Instruction& instruction) noexcept {
  if (instruction.kind != StatementKind::Instruction) return;
  const OpInfo& row = info(instruction.op);
  const auto operands = function.operands_of(instruction);
  in_order_ = in_order(instruction, row, operands);
  if (!in_order_ && !aligned(instruction, row, operands, places_)) return;
  specs_ = row.operands.data();
  count_ = operands.size();
}

Type operand_type(const Instruction& instruction, const OperandSpec& spec) noexcept {
  if (spec.role == OperandRole::Predicate) return Type::pred;
  const Type own = instruction.type(spec.index);
  switch (spec.type_source) {
    case TypeSource::Fixed:
      return spec.fixed;
    case TypeSource::Slot:
      return own;
    case TypeSource::Wide:
      return twice_as_wide(own);
    case TypeSource::Bits:
      return untyped(bits(own));
    case TypeSource::Any:
      return Type::none;
  }
  return Type::none;
}

unsigned operand_elements(const Instruction& instruction, const OperandSpec& spec) noexcept {
  if (spec.elements != ElementCount::Fixed) return counted_elements(instruction, spec.elements);
  if (!spec.vector_from_slot) return spec.vector;
  const unsigned elements = vector_elements(instruction);
  return elements == 1 ? 0 : elements;
}

bool takes_list_of_one(const Instruction& instruction, const OperandSpec& spec) noexcept {
  const bool untyped = kind(operand_type(instruction, spec)) == TypeKind::Bits;
  if (!spec.vector_from_slot) return spec.list_of_one && untyped;
  const Flag flags = info(instruction.op).flags;
  const bool accesses = has(flags, Flag::ReadsMemory) || has(flags, Flag::WritesMemory);
  return !instruction.has(Field::Vector) && (accesses || untyped);
}

}  // namespace ptxgen::inline v0::ptx
