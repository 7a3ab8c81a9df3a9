// src/analysis/copies.cpp - operands of asynchronous copies
#include "analysis/copies.hpp"

#include <algorithm>

#include "analysis/affine_forms.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;

std::optional<Copy> copy_of(const Function& function, const Instruction& statement) {
  if (statement.kind != StatementKind::Instruction) return std::nullopt;
  const OpInfo& row = info(statement.op);
  if (row.mnemonic != "cp" || !has(row.flags, Flag::ReadsMemory) || has(row.flags, Flag::Barrier) ||
      statement.get(Field::CopyMask) != Modifier::none ||
      statement.get(Field::TensorDimensions) != Modifier::none)
    return std::nullopt;
  // All such rows begin with `[d], [a], n`.
  const auto operands = function.operands_of(statement);
  if (operands.size() < 3 || operands.size() > row.operand_count ||
      operands[0].kind != OperandKind::Memory || operands[1].kind != OperandKind::Memory)
    return std::nullopt;
  Copy copy;
  copy.bulk = row.operands[2].role != OperandRole::Immediate;
  copy.combines = statement.get(Field::AtomicOp) != Modifier::none;
  copy.to = &operands[0];
  copy.from = &operands[1];
  copy.to_space = space_of(statement.get(Field::Space));
  copy.from_space = space_of(statement.get(Field::SourceSpace));
  copy.size = &operands[2];
  if (copy.bulk) return copy;
  const std::uint64_t bytes = copy.size->value;
  if (copy.size->kind != OperandKind::Integer || (bytes != 4 && bytes != 8 && bytes != 16))
    return std::nullopt;
  // The operand after the size belongs to a modifier (an L2 policy), or is this one.
  if (operands.size() > 3 && row.operands[3].with == Field::Literal) {
    copy.source = &operands[3];
    copy.ignores = row.operands[3].role == OperandRole::Predicate;
  }
  return copy;
}

std::uint32_t Copy::bytes_read(std::uint64_t value) const noexcept {
  if (ignores) return value != 0 ? 0 : lane_bytes();
  return std::min(static_cast<std::uint32_t>(value), lane_bytes());
}

AffineForm source_form(const Affine& affine, std::uint32_t statement, const Copy& copy) {
  if (copy.source == nullptr) return constant_form(copy.lane_bytes(), 32);
  const AffineForm form = affine.of(statement, *copy.source);
  return copy.source->negated ? sum(constant_form(-1, 1), form, -1) : form;
}

std::optional<std::uint64_t> constant_of(const AffineForm& form) noexcept {
  if (!form.is_constant() || form.may_wrap()) return std::nullopt;
  return pattern(static_cast<std::uint64_t>(form.constant), form.bits);
}

}  // namespace ptxgen::inline v0::analysis
