// src/optimize/edits.cpp - collected changes of a function body
#include "optimize/edits.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace ptxgen::inline v0::optimize {

using ptx::Function;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Operand;

Instruction Edits::make(ptx::Op op, std::span<const Modifier> modifiers,
                        std::span<const Operand> operands, std::uint32_t like) {
  const ptx::OpInfo& row = ptx::info(op);
  Instruction result;
  result.op = op;
  std::uint32_t unused = (1u << modifiers.size()) - 1u;
  for (std::size_t i = 0; i < row.slot_count; ++i) {
    const auto admitted = ptx::allowed_modifiers(row.slots[i]);
    for (std::size_t w = 0; w < modifiers.size(); ++w) {
      if ((unused >> w & 1u) == 0) continue;
      if (modifiers[w] == Modifier::none) {
        unused &= ~(1u << w);
        continue;
      }
      if (std::find(admitted.begin(), admitted.end(), modifiers[w]) == admitted.end()) continue;
      result.modifiers[i] = modifiers[w];
      unused &= ~(1u << w);
      break;
    }
    if (result.modifiers[i] == Modifier::none && !row.slots[i].optional) {
      if (admitted.size() != 1) throw std::logic_error("a pass left a modifier open");
      result.modifiers[i] = admitted[0];
    }
  }
  for (std::size_t w = 0; w < modifiers.size(); ++w) {
    if ((unused >> w & 1u) != 0 && modifiers[w] != Modifier::none) {
      throw std::logic_error("a pass gave an opcode a word that its row does not have");
    }
  }
  result.first_operand = static_cast<std::uint32_t>(function_->operands.size());
  result.operand_count = static_cast<std::uint16_t>(operands.size());
  function_->operands.insert(function_->operands.end(), operands.begin(), operands.end());
  if (like < function_->body.size()) {
    const Instruction& model = function_->body[like];
    result.line = model.line;
    result.site = model.site;
    result.contract = model.contract;
  }
  return result;
}

Instruction Edits::place(ptx::LabelId label, std::uint32_t like) {
  Instruction placed;
  placed.kind = ptx::StatementKind::Label;
  placed.first_operand = static_cast<std::uint32_t>(function_->operands.size());
  placed.operand_count = 1;
  function_->operands.push_back(Operand::label(label));
  function_->labels[label.value].defined = true;
  if (like < function_->body.size()) {
    placed.line = function_->body[like].line;
    placed.site = function_->body[like].site;
  }
  return placed;
}

Instruction Edits::copy(const Instruction& instruction) {
  Instruction copied = instruction;
  Function& f = *function_;
  copied.first_operand = static_cast<std::uint32_t>(f.operands.size());
  f.operands.reserve(f.operands.size() + instruction.operand_count);
  for (std::uint32_t i = 0; i < instruction.operand_count; ++i) {
    f.operands.push_back(f.operands[instruction.first_operand + i]);
  }
  for (std::uint32_t i = 0; i < instruction.operand_count; ++i) {
    Operand operand = f.operands[copied.first_operand + i];
    if (operand.kind != ptx::OperandKind::Vector && operand.kind != ptx::OperandKind::List) {
      continue;
    }
    const std::uint32_t from = operand.id;
    operand.id = static_cast<std::uint32_t>(f.operands.size());
    for (std::uint32_t e = 0; e < operand.index; ++e)
      f.operands.push_back(Operand(f.operands[from + e]));
    f.operands[copied.first_operand + i] = operand;
  }
  return copied;
}

ptx::Register Edits::new_register(ptx::Type type) {
  auto found = std::find_if(declared_.begin(), declared_.end(),
                            [&](const Declared& d) { return d.type == type; });
  if (found == declared_.end()) {
    std::string stem = "%opt_";
    stem += ptx::name(ptx::as_modifier(type));
    stem += '_';
    ptx::RegisterDecl decl;
    decl.name = FreshNames(*module_, *function_, stem).prefix();
    decl.type = type;
    decl.numbered = true;
    decl.count = 0;
    declared_.push_back({type, {static_cast<std::uint32_t>(function_->registers.size())}});
    function_->registers.push_back(decl);
    found = std::prev(declared_.end());
  }
  ptx::RegisterDecl& decl = function_->registers[found->decl.value];
  return {found->decl, decl.count++};
}

ptx::LabelId Edits::new_label(std::uint32_t scope) {
  ptx::Label label;
  // A split names thousands of labels, so the function is read once for all of them.
  if (!label_names_) label_names_.emplace(*module_, *function_, "$opt_");
  label.name = label_names_->name();
  label.scope = scope;
  function_->labels.push_back(label);
  return {static_cast<std::uint32_t>(function_->labels.size() - 1)};
}

void Edits::apply() {
  if (edits_.empty()) return;
  std::stable_sort(edits_.begin(), edits_.end(),
                   [](const Edit& a, const Edit& b) { return a.statement < b.statement; });
  std::vector<Instruction> body;
  body.reserve(function_->body.size() + edits_.size());
  auto edit = edits_.begin();
  for (std::uint32_t i = 0; i <= function_->body.size(); ++i) {
    const Instruction* here = i < function_->body.size() ? &function_->body[i] : nullptr;
    const Instruction* replacement = nullptr;
    for (; edit != edits_.end() && edit->statement == i; ++edit) {
      if (edit->kind == Kind::Before) body.push_back(edit->instruction);
      if (edit->kind == Kind::Replace) replacement = &edit->instruction;
      if (edit->kind == Kind::Erase) here = nullptr;
    }
    if (here != nullptr) body.push_back(replacement != nullptr ? *replacement : *here);
  }
  function_->body = std::move(body);
  edits_.clear();
}

}  // namespace ptxgen::inline v0::optimize
