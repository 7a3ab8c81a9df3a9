// src/builder/rows.cpp - finding the op table's row for words and operands
#include "builder/rows.hpp"

#include <algorithm>

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

bool is_there(const ptx::OperandSpec& spec, const ptx::Instruction& candidate) {
  return spec.with == ptx::Field::Literal || candidate.has(spec.with);
}

// Whether number and shape of the operands are the row's. Those tied to a word (`p:b64?hint`) are
// there exactly when the word is, the second half of `d|p` where an operand is marked as joined.
bool operands_fit(const ptx::OpInfo& row, std::span<const ptx::Operand> operands,
                  const ptx::Instruction& candidate,
                  std::array<const ptx::OperandSpec*, ptx::kMaxOperands>* out) {
  const auto specs = row.operand_specs();
  std::size_t required = 0;
  for (const ptx::OperandSpec& spec : specs) {
    if (is_there(spec, candidate) && (!spec.optional || spec.with != ptx::Field::Literal)) {
      ++required;
    }
  }
  std::size_t at = 0;
  for (const ptx::OperandSpec& spec : specs) {
    if (!is_there(spec, candidate)) continue;
    const bool optional = spec.optional && spec.with == ptx::Field::Literal;
    const std::size_t left = operands.size() - at;
    if (spec.joined && optional ? left == 0 || !operands[at].joined
                                : optional && left <= required) {
      continue;
    }
    if (left == 0) return false;
    if (!optional) --required;
    if (out != nullptr) (*out)[at] = &spec;
    const ptx::Operand& operand = operands[at++];
    if (operand.joined != spec.joined) return false;
    const bool vector =
        spec.vector != 0 || (spec.vector_from_slot && candidate.has(ptx::Field::Vector));
    const bool given = operand.kind == ptx::OperandKind::Vector;
    if (operand.kind != ptx::OperandKind::Sink && vector != given) return false;
    if (given && spec.vector != 0 && operand.index != spec.vector) return false;
  }
  return at == operands.size();
}

}  // namespace

bool fit_row(const Form& form, std::span<const ptx::Operand> operands, bool fill,
             ptx::Instruction& out, std::array<const ptx::OperandSpec*, ptx::kMaxOperands>* specs) {
  const ptx::OpInfo& row = ptx::info(form.op);
  std::uint32_t unused = (1u << form.words.count) - 1u;
  std::array<ptx::Modifier, ptx::kMaxModifiers> chosen{};
  for (std::size_t i = 0; i < row.slot_count; ++i) {
    const ptx::ModifierSlot& slot = row.slots[i];
    const auto admitted = ptx::words(slot);
    for (unsigned w = 0; w < form.words.count; ++w) {
      if ((unused >> w & 1u) == 0) continue;
      if (std::find(admitted.begin(), admitted.end(), form.words.word[w]) == admitted.end()) {
        continue;
      }
      chosen[i] = form.words.word[w];
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

ptx::Type wanted_type(const ptx::Instruction& statement, const ptx::OperandSpec& spec) noexcept {
  const auto bits_type = [](unsigned bits) {
    return bits == 16   ? ptx::Type::b16
           : bits == 32 ? ptx::Type::b32
           : bits == 64 ? ptx::Type::b64
                        : ptx::Type::none;
  };
  if (spec.role == ptx::OperandRole::Predicate) return ptx::Type::pred;
  switch (spec.type_source) {
    case ptx::TypeSource::Fixed:
      return spec.fixed;
    case ptx::TypeSource::Slot:
      return statement.type(spec.index);
    case ptx::TypeSource::Wide:
      return bits_type(2 * ptx::bits(statement.type(spec.index)));
    case ptx::TypeSource::Bits:
      return bits_type(ptx::bits(statement.type(spec.index)));
    case ptx::TypeSource::Any:
      break;
  }
  return ptx::Type::none;
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
