// src/emulator/decode/carried.cpp - which loaded values are only copied
#include <algorithm>
#include <array>
#include <string_view>

#include "emulator/decode/decoder.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// Rows that copy bits without depending on them. Constructors of bit fields read, mask and write
/// back words that were never written; copies of structures move padding.
bool carries(const ptx::Instruction& instruction) {
  static constexpr std::array<std::string_view, 12> kRows = {
      "mov", "and", "or", "xor", "not", "shl", "shr", "bfi", "bfe", "prmt", "cvt", "selp"};
  return std::ranges::find(kRows, ptx::info(instruction.op).mnemonic) != kRows.end();
}

enum class Use : std::uint8_t { Carried, StoredGeneric, Decides, ToResult };

/// Registers that hold generic addresses of the function's own variables.
analysis::RegisterSet local_pointers(const ptx::Function& function,
                                     const analysis::RegisterIndex& index) {
  analysis::RegisterSet pointers(index.size());
  for (const ptx::Instruction& instruction : function.body) {
    if (instruction.kind != ptx::StatementKind::Instruction) continue;
    const std::string_view mnemonic = ptx::info(instruction.op).mnemonic;
    bool points = instruction.op == ptx::Op::cvta &&
                  ptx::space_of(instruction.get(ptx::Field::Space)) == ptx::Space::Local;
    if (!points && mnemonic != "mov" && mnemonic != "add" && mnemonic != "sub") continue;
    // Frames are set up first and addresses computed before their use: one pass is enough.
    std::uint32_t result = ptx::kNone;
    analysis::for_each_access(function, instruction, [&](const analysis::RegisterAccess& access) {
      const std::uint32_t number = index.find(access.reg);
      if (access.write) {
        result = number;
      } else {
        points |= access.operand != analysis::kGuardPosition && pointers.contains(number);
      }
    });
    if (points && result != ptx::kNone) pointers.insert(result);
  }
  return pointers;
}

Use use_of(const ptx::Function& function, const ptx::Instruction& instruction,
           const analysis::RegisterAccess& access, bool to_own_variable) {
  if (access.operand == analysis::kGuardPosition) return Use::Decides;
  const ptx::OpInfo& row = ptx::info(instruction.op);
  if (row.mnemonic == "st") {
    if (access.operand == 0) return Use::Decides;  // the address
    switch (ptx::space_of(instruction.get(ptx::Field::Space))) {
      case ptx::Space::Local:
      case ptx::Space::Shared:
      case ptx::Space::Param:
        return Use::Carried;
      case ptx::Space::Generic:
        return to_own_variable ? Use::Carried : Use::StoredGeneric;
      default:
        return Use::Decides;
    }
  }
  if (ptx::has(row.flags, ptx::Flag::Call)) {
    const ptx::OperandSpec* spec = ptx::operand_spec(function, instruction, access.operand);
    const bool passed = spec != nullptr && spec->role == ptx::OperandRole::Arguments;
    return passed ? Use::Carried : Use::Decides;
  }
  const bool chooses = row.mnemonic == "selp" && access.operand == 3;
  return carries(instruction) && !chooses ? Use::ToResult : Use::Decides;
}

}  // namespace

DecidingRegisters::DecidingRegisters(const ptx::Function& function,
                                     const analysis::RegisterIndex& index)
    : in_thread_(index.size()), anywhere_(index.size()) {
  // Assume that the caller uses a result of the function in a register.
  for (const ptx::Variable& variable : function.returns) {
    if (variable.decl.value == ptx::kNone) continue;
    const std::uint32_t number = index.find({variable.decl, 0});
    if (number == ptx::kNone) continue;
    in_thread_.insert(number);
    anywhere_.insert(number);
  }
  // A load without uses is there for the access itself.
  analysis::RegisterSet used(index.size());
  for (const ptx::Instruction& instruction : function.body) {
    analysis::for_each_access(function, instruction, [&](const analysis::RegisterAccess& access) {
      if (!access.write) used.insert(index.find(access.reg));
    });
  }
  for (std::uint32_t number = 0; number < index.size(); ++number) {
    if (!used.contains(number)) anywhere_.insert(number);
  }
  const analysis::RegisterSet pointers = local_pointers(function, index);
  for (bool changed = true; changed;) {
    changed = false;
    const auto decide = [&](analysis::RegisterSet& set, std::uint32_t number) {
      if (set.contains(number)) return;
      set.insert(number);
      changed = true;
    };
    // Values flow forwards: iterating backwards mostly ends after two passes.
    for (auto at = function.body.rbegin(); at != function.body.rend(); ++at) {
      bool result_in_thread = false;
      bool result_anywhere = false;
      bool to_own_variable = false;
      analysis::for_each_access(function, *at, [&](const analysis::RegisterAccess& access) {
        const std::uint32_t number = index.find(access.reg);
        if (!access.write) {
          // The first operand of a store is the address.
          to_own_variable |= access.operand == 0 && pointers.contains(number);
          return;
        }
        result_in_thread |= in_thread_.contains(number);
        result_anywhere |= anywhere_.contains(number);
      });
      analysis::for_each_access(function, *at, [&](const analysis::RegisterAccess& access) {
        if (access.write) return;
        const std::uint32_t number = index.find(access.reg);
        const Use use = use_of(function, *at, access, to_own_variable);
        if (use == Use::Decides || (use == Use::ToResult && result_in_thread)) {
          decide(in_thread_, number);
        }
        if (use == Use::Decides || use == Use::StoredGeneric ||
            (use == Use::ToResult && result_anywhere)) {
          decide(anywhere_, number);
        }
      });
    }
  }
}

Decoder::Deciding Decoder::deciding_results() const {
  Deciding computed;
  std::uint8_t bit = 1;
  const auto add = [&](const ptx::Operand& element) {
    if (element.kind == ptx::OperandKind::Register) {
      const std::uint32_t number = register_index_.find(element.as_register());
      if (deciding_.in_thread(number)) computed.in_thread |= bit;
      if (deciding_.anywhere(number)) computed.anywhere |= bit;
    }
    bit = static_cast<std::uint8_t>(bit << 1);
  };
  const ptx::Operand& result = function().operands_of(*instruction_).front();
  const bool one_vector = result.kind == ptx::OperandKind::Register && result.component == 0 &&
                          function().registers[result.id].vector > 1;
  if (result.kind == ptx::OperandKind::Vector) {
    for (const ptx::Operand& element : function().elements(result)) add(element);
  } else if (one_vector) {
    add(result);
    if (computed.in_thread != 0) computed.in_thread = 0xff;
    if (computed.anywhere != 0) computed.anywhere = 0xff;
  } else {
    add(result);
  }
  return computed;
}

}  // namespace ptxgen::inline v0::emulator
