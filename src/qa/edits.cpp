// src/qa/edits.cpp - edits of a module that lines must notice
#include "qa/edits.hpp"

#include <iterator>
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

}  // namespace ptxgen::qa
