// src/coverage/recorder.cpp - counts the accesses of a launch in cells
#include "coverage/recorder.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "ptx/vector_elements.hpp"
#include "ptxgen/ptx/printer.hpp"

namespace ptxgen::coverage {

namespace {

// As the observer finds it: "%rd3", "%v.x".
std::string register_name(const ptx::Module& module, const ptx::Function& function,
                          const ptx::Operand& operand) {
  std::string name = ptx::name_of(module, function, operand.as_register());
  if (operand.component != 0) name += {'.', "xyzw"[operand.component - 1]};
  return name;
}

bool is_wide_register(const ptx::Function& function, const ptx::Operand& operand) {
  return operand.base == ptx::OperandKind::Register &&
         ptx::bits(function.type_of(operand.as_register())) == 64;
}

bool is_tensor_copy(ptx::Op op) {
  return ptx::info(op).id.find("bulk_tensor") != std::string_view::npos;
}

// The operand that says how many bytes a copy has: the first after the addresses.
const ptx::Operand* size_operand(std::span<const ptx::Operand> operands) {
  const auto found = std::ranges::find_if(operands, [](const ptx::Operand& operand) {
    return operand.kind != ptx::OperandKind::Memory;
  });
  return found == operands.end() ? nullptr : &*found;
}

}  // namespace

CellRecorder::CellRecorder(std::vector<WatchedBuffer> buffers) : buffers_(std::move(buffers)) {
  for (const WatchedBuffer& buffer : buffers_) {
    maps_.push_back(make_cells(buffer.name, buffer.rows, buffer.columns));
  }
}

bool CellRecorder::before(const emulator::Moment& moment) {
  const ptx::Function& function = moment.function();
  if (&function != last_) {
    auto found = functions_.find(&function);
    if (found == functions_.end()) {
      found = functions_.emplace(&function, accesses_of(moment.module(), function)).first;
    }
    last_ = &function;
    last_accesses_ = &found->second;
  }
  const std::vector<Access>& accesses = (*last_accesses_)[moment.statement()];
  if (accesses.empty() || moment.executing() == 0) return true;
  const std::uint64_t block = moment.block_number();
  for (const Access& access : accesses) {
    const emulator::RegisterLanes address = moment.register_lanes(access.address);
    emulator::RegisterLanes size;
    if (!access.size_register.empty()) size = moment.register_lanes(access.size_register);
    for (std::uint32_t lanes = moment.executing() & address.known; lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
      count(address.low[lane] + static_cast<std::uint64_t>(access.offset),
            access.size_register.empty() ? access.bytes : size.low[lane], access, block,
            32 * moment.warp() + lane);
    }
  }
  return true;
}

CellRecorder::Accesses CellRecorder::accesses_of(const ptx::Module& module,
                                                 const ptx::Function& function) {
  Accesses all(function.body.size());
  for (std::size_t i = 0; i < function.body.size(); ++i) {
    const ptx::Instruction& s = function.body[i];
    if (s.kind == ptx::StatementKind::Instruction) add_accesses(module, function, s, all[i]);
  }
  return all;
}

void CellRecorder::add_accesses(const ptx::Module& module, const ptx::Function& function,
                                const ptx::Instruction& s, std::vector<Access>& to) {
  const ptx::OpInfo& row = ptx::info(s.op);
  const bool reads = ptx::has(row.flags, ptx::Flag::ReadsMemory);
  const bool writes = ptx::has(row.flags, ptx::Flag::WritesMemory);
  if (!reads && !writes) return;
  const auto operands = function.operands_of(s);
  const bool copies = row.mnemonic == "cp";
  if (!copies && ptx::space_of(s.get(ptx::Field::Space)) == ptx::Space::Shared) return;
  const bool reduces = row.id.starts_with("cp_reduce");
  const bool typed = row.mnemonic == "ld" || row.mnemonic == "ldu" || row.mnemonic == "st" ||
                     row.mnemonic == "atom" || row.mnemonic == "red";
  bool first = true;
  for (const ptx::Operand& operand : operands) {
    if (operand.kind != ptx::OperandKind::Memory) continue;
    const bool destination = std::exchange(first, false);
    // A 32-bit address is one of shared memory. Addresses of shared memory in 64 bits are in no
    // watched buffer.
    if (!is_wide_register(function, operand)) continue;
    Access access;
    access.address = register_name(module, function, operand);
    access.offset = operand.offset();
    access.reads = copies ? !destination || reduces : reads;
    access.writes = copies ? destination : writes;
    const ptx::Operand* const size = copies ? size_operand(operands) : nullptr;
    if (typed) {
      access.bytes = std::uint64_t{ptx::bits(s.type())} / 8 * ptx::vector_elements(s);
    } else if (size != nullptr && !is_tensor_copy(s.op)) {
      if (size->kind == ptx::OperandKind::Register) {
        access.size_register = register_name(module, function, *size);
      } else {
        access.bytes = size->value;
      }
    } else {
      std::string opcode = ptx::print(module, function, s);
      if (opcode.starts_with('@')) opcode.erase(0, opcode.find(' ') + 1);
      uncounted_ = opcode.substr(0, opcode.find(' '));
      continue;
    }
    to.push_back(std::move(access));
  }
}

void CellRecorder::count(std::uint64_t address, std::uint64_t bytes, const Access& access,
                         std::uint64_t block, std::uint32_t thread) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const WatchedBuffer& buffer = buffers_[i];
    if (address < buffer.address || address - buffer.address >= buffer.bytes || bytes == 0) {
      continue;
    }
    CellMap& map = maps_[i];
    const std::uint64_t offset = address - buffer.address;
    const std::uint64_t last = std::min(offset + bytes, buffer.bytes) - 1;
    const std::uint64_t end = last / buffer.element_bytes + 1;
    for (std::uint64_t element = offset / buffer.element_bytes; element < end;) {
      const std::uint64_t row = element / map.columns;
      const std::uint64_t column = element % map.columns;
      if (row >= map.rows) break;
      // All elements up to the end of the cell, the row or the access.
      const std::uint64_t cell_end =
          std::min((column / map.side + 1) * map.side, map.columns) - column;
      const std::uint64_t here = std::min(end - element, cell_end);
      map.cells[static_cast<std::size_t>(row / map.side * map.cell_columns() + column / map.side)]
          .add({access.reads ? here : 0, access.writes ? here : 0, block, block, thread, thread});
      element += here;
    }
    return;
  }
}

}  // namespace ptxgen::coverage
