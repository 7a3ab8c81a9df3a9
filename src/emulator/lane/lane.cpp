// src/emulator/lane/lane.cpp - which function computes a lane of a row
#include "emulator/lane/lane.hpp"

namespace ptxgen::inline v0::emulator {

LaneFunction lane_function(const ptx::Instruction& instruction, LaneOp& op) {
  if (instruction.kind != ptx::StatementKind::Instruction) return nullptr;
  op = ptx::scalar_op(instruction);
  if (const LaneFunction found = ptx::scalar_function(op)) return found;
  for (const auto part : {&float_comparison_function, &float_function, &conversion_function}) {
    if (const LaneFunction found = part(op)) return found;
  }
  return nullptr;
}

}  // namespace ptxgen::inline v0::emulator
