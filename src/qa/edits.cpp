// src/qa/edits.cpp - edits of a module that lines must notice
#include "qa/edits.hpp"

#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/ptx/parser.hpp"

namespace ptxgen::qa {

namespace {

void erase_at(ptx::Function& function, std::size_t index) {
  if (index < function.body.size()) {
    function.body.erase(function.body.begin() + static_cast<std::ptrdiff_t>(index));
  }
}

}  // namespace

std::size_t find_statement(const ptx::Function& function, ptx::Op op, std::size_t number) {
  for (std::size_t i = 0; i < function.body.size(); ++i) {
    if (function.body[i].is(op) && number-- == 0) return i;
  }
  return function.body.size();
}

std::size_t count_statements(const ptx::Function& function, ptx::Op op) {
  std::size_t count = 0;
  for (const ptx::Instruction& statement : function.body) count += statement.is(op);
  return count;
}

ptx::Operand* operand_at(ptx::Module& module, ptx::Op op, std::size_t number, std::size_t i) {
  ptx::Function& function = module.functions.front();
  const std::size_t at = find_statement(function, op, number);
  if (at == function.body.size() || i >= function.body[at].operand_count) return nullptr;
  return &function.operands_of(function.body[at])[i];
}

void remove_statement(ptx::Module& module, ptx::Op op, std::size_t number) {
  ptx::Function& function = module.functions.front();
  erase_at(function, find_statement(function, op, number));
}

void remove_barrier(ptx::Module& module, std::size_t number) {
  remove_statement(module, ptx::Op::bar_sync, number);
}

void set_operand(ptx::Module& module, ptx::Op op, std::size_t number, std::size_t i,
                 const ptx::Operand& value) {
  if (ptx::Operand* operand = operand_at(module, op, number, i)) *operand = value;
}

void set_modifier(ptx::Module& module, ptx::Op op, ptx::Field field, ptx::Modifier modifier) {
  for (ptx::Instruction& statement : module.functions.front().body) {
    if (statement.is(op)) statement.set(field, modifier);
  }
}

void remove_branch(ptx::Module& module, std::size_t number) {
  ptx::Function& function = module.functions.front();
  for (std::size_t i = 0; i < function.body.size(); ++i) {
    const ptx::Instruction& statement = function.body[i];
    if (statement.is(ptx::Op::bra) && statement.guard.present() && number-- == 0) {
      erase_at(function, i);
      return;
    }
  }
}

void insert_before(ptx::Module& module, std::size_t index, std::string_view statements) {
  ptx::Function& function = module.functions.front();
  const std::size_t before = function.body.size();
  ptx::parse_into(module, 0, statements);
  std::vector<ptx::Instruction> added(
      std::make_move_iterator(function.body.begin() + static_cast<std::ptrdiff_t>(before)),
      std::make_move_iterator(function.body.end()));
  function.body.resize(before);
  function.body.insert(function.body.begin() + static_cast<std::ptrdiff_t>(index), added.begin(),
                       added.end());
}

void accumulate_into_output(ptx::Module& m) {
  ptx::Function& function = m.functions.front();
  const std::size_t last =
      find_statement(function, ptx::Op::st, count_statements(function, ptx::Op::st) - 1);
  if (last == function.body.size()) return;
  const std::span<const ptx::Operand> operands = function.operands_of(function.body[last]);
  const std::string address = ptx::name_of(m, function, operands[0].as_register());
  const std::string value = ptx::name_of(m, function, operands[1].as_register());
  insert_before(m, last,
                ".reg .f32 before;\nld.global.f32 before, [" + address + "];\nadd.rn.f32 " + value +
                    ", " + value + ", before;\n");
}

// mad.wide is the address arithmetic of A: column * 4, then for each row the size of a row, which
// is one element of the transposed matrix.
void swap_indices_of_matrix(ptx::Module& m) {
  const ptx::Operand* const rows = operand_at(m, ptx::Op::min, 0, 1);
  const ptx::Operand* const column = operand_at(m, ptx::Op::mad_wide, 0, 1);
  if (rows == nullptr || column == nullptr) return;
  const ptx::Function& before = m.functions.front();
  const std::string product = "mul.lo.u32 swapped, " +
                              ptx::name_of(m, before, column->as_register()) + ", " +
                              ptx::name_of(m, before, rows->as_register()) + ";\n";
  insert_before(m, find_statement(before, ptx::Op::mad_wide, 0), ".reg .b32 swapped;\n" + product);
  ptx::Function& function = m.functions.front();
  const auto decl = static_cast<std::uint32_t>(function.registers.size() - 1);
  *operand_at(m, ptx::Op::mad_wide, 0, 1) = ptx::Operand::reg(ptx::Register{{decl}, 0});
  set_operand(m, ptx::Op::mul_wide, 0, 2, ptx::Operand::integer(1));
  for (ptx::Instruction& statement : function.body) {
    if (!statement.is(ptx::Op::mad_wide)) continue;
    const std::span<ptx::Operand> operands = function.operands_of(statement);
    if (operands[0] == operands[3]) operands[1] = ptx::Operand::integer(1);
  }
}

}  // namespace ptxgen::qa
