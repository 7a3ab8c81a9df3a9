// src/ptx/semantics/scalar.cpp - which function computes a scalar row
#include "ptx/semantics/scalar.hpp"

namespace ptxgen::inline v0::ptx {
namespace {

bool has_effects(Op op) {
  return (static_cast<unsigned>(info(op).flags) & ~static_cast<unsigned>(Flag::Commutative)) != 0;
}

/// Of several fields that choose the mode of one row, the one that is written first counts.
void read(ScalarOp& op, Field field, Modifier word) noexcept {
  switch (field) {
    case Field::Rounding:
    case Field::IntegerRounding:
      if (op.rounding == Modifier::none) op.rounding = word;
      break;
    case Field::Comparison:
      op.comparison = word;
      break;
    case Field::BoolOp:
      op.boolean = word;
      break;
    case Field::ClampMode:
      op.clamp = word == Modifier::clamp;
      [[fallthrough]];
    case Field::MulPart:
    case Field::FunnelDirection:
    case Field::PermuteMode:
    case Field::FloatClass:
      if (op.mode == Modifier::none) op.mode = word;
      break;
    case Field::Approximation:
      op.approx = true;
      if (op.mode == Modifier::none) op.mode = word;
      break;
    case Field::FlushToZero:
      op.ftz = true;
      break;
    case Field::Saturate:
      op.sat = true;
      break;
    case Field::SaturateFinite:
      op.satfinite = true;
      break;
    case Field::Relu:
      op.relu = true;
      break;
    case Field::PropagateNan:
      op.nan = true;
      break;
    case Field::XorSign:
      op.xorsign = true;
      break;
    case Field::Abs:
      op.abs = true;
      break;
    case Field::CarryOut:
      op.carry_out = true;
      break;
    case Field::ShiftAmount:
      op.shiftamt = true;
      break;
    default:
      break;
  }
}

}  // namespace

ScalarOp scalar_op(const Instruction& instruction) noexcept {
  ScalarOp op;
  op.op = instruction.op;
  op.type = instruction.type(0);
  op.type2 = instruction.type(1);
  op.type3 = instruction.type(2);
  if (instruction.kind != StatementKind::Instruction) return op;
  const OpInfo& row = info(instruction.op);
  for (std::size_t i = 0; i < row.slot_count; ++i) {
    if (instruction.modifiers[i] != Modifier::none)
      read(op, row.slots[i].field, instruction.modifiers[i]);
  }
  return op;
}

ScalarFunction scalar_function(const ScalarOp& op) noexcept {
  for (const auto part : {&integer_function, &logic_function, &comparison_function}) {
    if (const ScalarFunction found = part(op)) return found;
  }
  return nullptr;
}

bool is_defined(const ScalarOp& op, const std::uint64_t* sources) noexcept {
  switch (op.op) {
    case Op::div:
    case Op::rem:
      return sources[1] != 0;
    case Op::fns:
      return sources[1] < 32;
    default:
      return true;
  }
}

ScalarRow::ScalarRow(const Function& function, const Instruction& instruction,
                     const OperandSpecs& specs, bool with_function) {
  if (instruction.kind != StatementKind::Instruction || has_effects(instruction.op)) return;
  const auto operands = function.operands_of(instruction);
  std::size_t destinations = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const OperandSpec* spec = specs[i];
    if (spec == nullptr || operands[i].kind == OperandKind::Vector ||
        operands[i].kind == OperandKind::List)
      return;
    if (spec->role == OperandRole::Destination) {
      ++destinations;
    } else {
      if (sources_ == kMaxSources) return;
      operands_[sources_++] = static_cast<std::uint8_t>(i);
    }
  }
  if (destinations > Results{}.size()) return;
  destinations_ = destinations;
  if (with_function) *this = resolved(instruction);
}

ScalarRow ScalarRow::resolved(const Instruction& instruction) const {
  ScalarRow row = *this;
  if (bits(instruction.type(0)) > 64) return row;
  row.op_ = scalar_op(instruction);
  row.op_.source_count = static_cast<std::uint8_t>(sources_);
  row.op_.result_count = static_cast<std::uint8_t>(destinations_);
  row.function_ = scalar_function(row.op_);
  return row;
}

}  // namespace ptxgen::inline v0::ptx
