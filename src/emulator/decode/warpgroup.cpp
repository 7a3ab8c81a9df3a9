// src/emulator/decode/warpgroup.cpp - accesses to registers of wgmma
#include "emulator/memory/warpgroup.hpp"
#include "emulator/decode/decoder.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

bool is_product(const ptx::Instruction& instruction) {
  return instruction.kind == ptx::StatementKind::Instruction &&
         instruction.op >= ptx::Op::wgmma_f16_f16_shared &&
         instruction.op <= ptx::Op::wgmma_s8_registers;
}

}  // namespace

/// Accumulators, and fragments of a.
void Decoder::find_warpgroup_registers() {
  const auto& body = function().body;
  for (const ptx::Instruction& statement : body) {
    if (!is_product(statement)) continue;
    if (!function().entry) {
      instruction_ = &statement;
      refuse("the emulator runs wgmma in kernels, not in device functions");
    }
    warpgroup_registers_.resize(register_index_.size());
    const bool in_registers = function().operands_of(statement)[1].kind == ptx::OperandKind::Vector;
    analysis::for_each_access(function(), statement, [&](const analysis::RegisterAccess& access) {
      if (access.operand == 0 || (access.operand == 1 && in_registers)) {
        warpgroup_registers_[register_index_.find(access.reg)] = true;
      }
    });
  }
}

void Decoder::warpgroup_access_step() {
  if (is_product(*instruction_)) return;
  WarpgroupAccesses detail;
  analysis::for_each_access(function(), *instruction_, [&](const analysis::RegisterAccess& access) {
    if (!warpgroup_registers_[register_index_.find(access.reg)]) return;
    for (const Slot& slot : components(access.reg, access.component)) {
      detail.accesses.push_back(
          {slot.offset, ptx::name_of(image_.module, function(), access.reg), access.write});
    }
  });
  if (detail.accesses.empty()) return;
  Step access_step = step();
  access_step.run = &run_warpgroup_access;
  access_step.detail = static_cast<std::uint32_t>(code_.warpgroup_accesses.size());
  code_.warpgroup_accesses.push_back(std::move(detail));
  add(access_step);
}

}  // namespace ptxgen::inline v0::emulator
