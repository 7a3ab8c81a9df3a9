// src/emulator/lane/lane.cpp - which function computes a lane of a row
#include "emulator/lane/lane.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Field;
using ptx::Modifier;

/// The word of the first of these fields that the instruction has.
template <class... Fields>
Modifier first_of(const ptx::Instruction& instruction, Fields... fields) {
  Modifier found = Modifier::none;
  ((found = found == Modifier::none ? instruction.get(fields) : found), ...);
  return found;
}

}  // namespace

void fill_lane_op(const ptx::Instruction& instruction, LaneOp& op) {
  op = {};
  op.op = instruction.op;
  op.type = instruction.type(0);
  op.type2 = instruction.type(1);
  op.type3 = instruction.type(2);
  op.rounding = first_of(instruction, Field::Rounding, Field::IntegerRounding);
  op.comparison = instruction.get(Field::Comparison);
  op.boolean = instruction.get(Field::BoolOp);
  op.mode = first_of(instruction, Field::MulPart, Field::FunnelDirection, Field::PermuteMode,
                     Field::FloatClass, Field::ClampMode, Field::Approximation);
  op.ftz = instruction.has(Field::FlushToZero);
  op.sat = instruction.has(Field::Saturate);
  op.satfinite = instruction.has(Field::SaturateFinite);
  op.relu = instruction.has(Field::Relu);
  op.nan = instruction.has(Field::PropagateNan);
  op.xorsign = instruction.has(Field::XorSign);
  op.abs = instruction.has(Field::Abs);
  op.approx = instruction.has(Field::Approximation);
  op.carry_out = instruction.has(Field::CarryOut);
  op.shiftamt = instruction.has(Field::ShiftAmount);
  op.clamp = instruction.get(Field::ClampMode) == Modifier::clamp;
}

LaneFunction lane_function(const ptx::Instruction& instruction, LaneOp& op) {
  if (instruction.kind != ptx::StatementKind::Instruction) return nullptr;
  fill_lane_op(instruction, op);
  for (const auto part : {&integer_function, &logic_function, &comparison_function, &float_function,
                          &conversion_function}) {
    if (const LaneFunction found = part(op)) return found;
  }
  return nullptr;
}

}  // namespace ptxgen::inline v0::emulator
