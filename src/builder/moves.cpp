// src/builder/moves.cpp - results that are only moved into a variable
#include "builder/moves.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "ptxgen/ptx/ops.hpp"

namespace ptxgen::inline v0::detail {

namespace {

/// How often each register is an operand, part of an address or a guard; counted up to 3.
class Mentions {
 public:
  explicit Mentions(const ptx::Function& f) {
    std::size_t registers = 0;
    for (const ptx::RegisterDecl& decl : f.registers) {
      first_.push_back(registers);
      registers += decl.count == 0 ? 1 : decl.count;
    }
    counts_.resize(registers);
    for (const ptx::Operand& operand : f.operands) {
      const bool address =
          operand.kind == ptx::OperandKind::Memory && operand.base == ptx::OperandKind::Register;
      if (address || operand.kind == ptx::OperandKind::Register) count(operand.as_register());
    }
    for (const ptx::Instruction& s : f.body) {
      if (s.guard.present()) count(s.guard.predicate);
    }
  }
  [[nodiscard]] unsigned of(ptx::Register r) const {
    return counts_[first_[r.decl.value] + r.index];
  }

 private:
  void count(ptx::Register r) {
    std::uint8_t& of_register = counts_[first_[r.decl.value] + r.index];
    if (of_register < 3) ++of_register;
  }

  std::vector<std::size_t> first_;  // of each declaration, in `counts_`
  std::vector<std::uint8_t> counts_;
};

bool is_plain(const ptx::Instruction& s) {
  return s.kind == ptx::StatementKind::Instruction && !s.guard.present();
}

/// The register that the statement writes alone, if it has one such destination.
ptx::Operand* only_result(ptx::Function& f, const ptx::Instruction& s) {
  if (!is_plain(s) || s.operand_count == 0) return nullptr;
  const ptx::OpInfo& row = ptx::info(s.op);
  ptx::Operand& first = f.operands[s.first_operand];
  const bool written = row.operands[0].role == ptx::OperandRole::Destination;
  const bool another = s.operand_count > 1 && row.operands[1].role == ptx::OperandRole::Destination;
  return written && !another && first.kind == ptx::OperandKind::Register ? &first : nullptr;
}

/// Whether the statement is `mov to, from` of that register into one of the same declaration.
bool moves(const ptx::Function& f, const ptx::Instruction& s, const ptx::Operand& from) {
  if (!is_plain(s) || s.op != ptx::Op::mov || s.operand_count != 2) return false;
  const ptx::Operand& to = f.operands[s.first_operand];
  const ptx::Operand& source = f.operands[s.first_operand + 1];
  return to.kind == ptx::OperandKind::Register && source == from && to.id == from.id;
}

}  // namespace

void fold_moves(ptx::Function& f) {
  const bool unknown = std::any_of(f.body.begin(), f.body.end(), [](const ptx::Instruction& s) {
    return s.kind == ptx::StatementKind::Unknown;  // its text may name registers
  });
  if (unknown) return;
  std::optional<Mentions> mentions;
  std::size_t kept = 0;
  std::size_t previous = ptx::kNone;  // the statement before, but for locations
  for (std::size_t i = 0; i < f.body.size(); ++i) {
    const ptx::Instruction& s = f.body[i];
    ptx::Operand* const result =
        previous == ptx::kNone ? nullptr : only_result(f, f.body[previous]);
    if (result != nullptr && moves(f, s, *result)) {
      if (!mentions) mentions.emplace(f);
      if (mentions->of(result->as_register()) == 2) {
        *result = f.operands[s.first_operand];
        continue;
      }
    }
    if (s.kind != ptx::StatementKind::Location) previous = kept;
    if (kept != i) f.body[kept] = s;
    ++kept;
  }
  f.body.resize(kept);
}

}  // namespace ptxgen::inline v0::detail
