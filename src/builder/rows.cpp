// src/builder/rows.cpp - selecting the row for modifiers and operands
#include "builder/rows.hpp"

#include <algorithm>

#include "ptx/operand_alignment.hpp"

namespace ptxgen::inline v0::detail {

namespace {

constexpr std::string_view kMnemonics[] = {
#define PTXGEN_GROUP(id, title)
#define PTXGEN_OP(id, mnemonic, pattern, operands, needs, flags, doc) mnemonic,
#include "ptxgen/ptx/ops.def"
};
constexpr std::size_t kRows = std::size(kMnemonics);

// The next row with the same mnemonic, the first one after the last.
constexpr auto kNextRow = [] {
  std::array<std::uint16_t, kRows> order{};
  for (std::size_t i = 0; i < kRows; ++i) order[i] = static_cast<std::uint16_t>(i);
  std::sort(order.begin(), order.end(), [](std::uint16_t a, std::uint16_t b) {
    const int order_of_names = kMnemonics[a].compare(kMnemonics[b]);
    return order_of_names != 0 ? order_of_names < 0 : a < b;
  });
  std::array<std::uint16_t, kRows> next{};
  std::size_t first = 0;
  for (std::size_t i = 0; i < kRows; ++i) {
    if (kMnemonics[order[i]] != kMnemonics[order[first]]) first = i;
    const bool last = i + 1 == kRows || kMnemonics[order[i + 1]] != kMnemonics[order[i]];
    next[order[i]] = last ? order[first] : order[i + 1];
  }
  return next;
}();

// Whether number and shape of the operands are the row's; types are looked at later.
bool operands_fit(const ptx::OpInfo& row, std::span<const ptx::Operand> operands,
                  const ptx::Instruction& candidate, OperandSpecs* specs) {
  ptx::OperandAlignment alignment;
  if (!ptx::align_operands(candidate, operands, alignment)) return false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const ptx::OperandSpec& spec = row.operands[alignment[i]];
    const ptx::Operand& operand = operands[i];
    const unsigned elements = ptx::operand_elements(candidate, spec);
    const bool vector = elements != 0;
    const bool is_vector = operand.kind == ptx::OperandKind::Vector;
    if (operand.kind != ptx::OperandKind::Sink && vector != is_vector) return false;
    if (is_vector && !spec.vector_from_slot && operand.index != elements) return false;
    if (specs != nullptr) (*specs)[i] = &spec;
  }
  return true;
}

}  // namespace

bool fit_row(const Form& form, std::span<const ptx::Operand> operands, bool fill,
             ptx::Instruction& out, OperandSpecs* specs) {
  const ptx::OpInfo& row = ptx::info(form.op);
  std::uint32_t unused = (1u << form.modifiers.count) - 1u;
  std::array<ptx::Modifier, ptx::kMaxModifiers> chosen{};
  for (std::size_t i = 0; i < row.slot_count; ++i) {
    const ptx::ModifierSlot& slot = row.slots[i];
    const auto admitted = ptx::allowed_modifiers(slot);
    for (unsigned w = 0; w < form.modifiers.count; ++w) {
      if ((unused >> w & 1u) == 0) continue;
      if (std::find(admitted.begin(), admitted.end(), form.modifiers.values[w]) == admitted.end()) {
        continue;
      }
      chosen[i] = form.modifiers.values[w];
      unused &= ~(1u << w);
      break;
    }
    if (chosen[i] == ptx::Modifier::none && !slot.optional) {
      if (!fill || admitted.size() != 1) return false;
      chosen[i] = admitted[0];
    }
  }
  if (unused != 0) return false;
  ptx::Instruction candidate;
  candidate.op = form.op;
  candidate.modifiers = chosen;
  if (!operands_fit(row, operands, candidate, specs)) return false;
  out.op = form.op;
  out.modifiers = chosen;
  return true;
}

bool find_row(const Form& form, std::span<const ptx::Operand> operands, ptx::Instruction& out) {
  Form candidate = form;
  do {
    if (fit_row(candidate, operands, false, out)) return true;
    candidate.op = static_cast<ptx::Op>(kNextRow[static_cast<std::size_t>(candidate.op)]);
  } while (candidate.op != form.op);
  return false;
}

}  // namespace ptxgen::inline v0::detail
