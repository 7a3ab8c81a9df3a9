// src/emulator/machine/grid_sync.cpp - traps of a grid-wide barrier outside of cooperative launches
#include "emulator/machine/grid_sync.hpp"

#include <algorithm>
#include <vector>

#include "ptxgen/analysis/registers.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Instruction;
using ptx::OperandKind;
using ptx::StatementKind;

bool reads_workspace(const ptx::Function& function, const Instruction& statement) {
  return std::ranges::any_of(function.operands_of(statement), [](const ptx::Operand& operand) {
    return operand.kind == OperandKind::Special &&
           (operand.id == static_cast<std::uint32_t>(ptx::SpecialRegister::envreg1) ||
            operand.id == static_cast<std::uint32_t>(ptx::SpecialRegister::envreg2));
  });
}

/// Guards that decide whether the statement is reached, from the text around it.
std::vector<ptx::Register> guards_of(const ptx::Function& function, const Instruction& statement) {
  std::vector<ptx::Register> guards;
  if (statement.guard.present()) guards.push_back(statement.guard.predicate);
  const auto index = static_cast<std::size_t>(&statement - function.body.data());
  for (std::size_t i = index; i-- > 0;) {
    const Instruction& at = function.body[i];
    if (at.kind == StatementKind::Label) {
      const std::uint32_t label = function.operands_of(at)[0].id;
      for (const Instruction& branch : function.body) {
        if (!branch.is(ptx::Op::bra) || !branch.guard.present()) continue;
        for (const ptx::Operand& to : function.operands_of(branch)) {
          if (to.kind == OperandKind::Label && to.id == label) {
            guards.push_back(branch.guard.predicate);
          }
        }
      }
      break;
    }
    if (at.kind != StatementKind::Instruction) continue;
    if (at.is(ptx::Op::bra)) {
      if (at.guard.present()) guards.push_back(at.guard.predicate);
      break;
    }
  }
  return guards;
}

}  // namespace

bool guards_grid_sync(const ptx::Function& function, const Instruction& trap) {
  std::vector<ptx::Register> registers = guards_of(function, trap);
  for (std::size_t next = 0; next < registers.size(); ++next) {
    const ptx::Register target = registers[next];
    for (const Instruction& statement : function.body) {
      bool writes = false;
      analysis::for_each_register(
          function, statement,
          [&](ptx::Register reg, bool write, std::size_t) { writes |= write && reg == target; });
      if (!writes) continue;
      if (reads_workspace(function, statement)) return true;
      analysis::for_each_register(
          function, statement, [&](ptx::Register reg, bool write, std::size_t) {
            if (!write && std::ranges::find(registers, reg) == registers.end())
              registers.push_back(reg);
          });
    }
  }
  return false;
}

}  // namespace ptxgen::inline v0::emulator
