// src/ptx/unknown.cpp - what is certain about instructions outside the op table
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/order_words.hpp"
#include "ptxgen/ptx/target.hpp"
#include "ptxgen/ptx/unknown.hpp"

namespace ptxgen::inline v0::ptx {

namespace {

constexpr std::uint16_t kRoundingRequired = 75;  // ptxas 13.0 takes `mad.f32` below

std::string_view opcode_of(std::string_view text) {
  return text.substr(0, text.find_first_of(" \t\n{[;"));
}

std::vector<std::string_view> words_of(std::string_view opcode) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at <= opcode.size();) {
    const std::size_t dot = std::min(opcode.find('.', at), opcode.size());
    words.push_back(opcode.substr(at, dot - at));
    at = dot + 1;
  }
  return words;
}

// Letters to change, add or leave out to make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// The name nearest to a misspelt one, of several one that begins alike, or empty if none is near.
class Nearest {
 public:
  explicit Nearest(std::string_view wrong) : wrong_(wrong) {}
  void offer(std::string_view name) {
    // Twice the distance, so that a first letter decides between equals.
    const std::size_t far =
        2 * distance(wrong_, name) + (name.substr(0, 1) == wrong_.substr(0, 1) ? 0 : 1);
    if (far >= best_) return;
    best_ = far;
    name_ = name;
  }
  [[nodiscard]] std::string_view name() const { return name_; }

 private:
  std::string_view wrong_;
  std::string_view name_;
  std::size_t best_ = 6;
};

UnknownFault unknown(std::string message, std::string cure) {
  return {"unknown-instruction", std::move(message), std::move(cure)};
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

constexpr std::size_t kNoSlot = kMaxModifiers;

// Whether a row takes these words, in any order, with one of `slot`, which it requires, added.
bool takes_with(const OpInfo& row, const std::vector<std::string_view>& given, std::size_t slot) {
  std::vector<Modifier> left;
  for (std::size_t i = 1; i < given.size(); ++i) left.push_back(modifier_from_text(given[i]));
  for (std::size_t i = 0; i < row.slot_count; ++i) {
    if (i == slot) continue;
    const auto legal = words(row.slots[i]);
    const auto at = std::find_first_of(left.begin(), left.end(), legal.begin(), legal.end());
    if (at != left.end()) {
      left.erase(at);
    } else if (!row.slots[i].optional) {
      return false;
    }
  }
  return left.empty();
}

bool in_table(std::string_view opcode) {
  const auto given = words_of(opcode);
  const auto rows = ops_with_mnemonic(given[0]);
  return std::any_of(rows.begin(), rows.end(),
                     [&](Op op) { return takes_with(info(op), given, kNoSlot); });
}

// `mad.f32` without a rounding and the like: all known words, but one lacks.
std::optional<UnknownFault> lacks_word(const std::vector<std::string_view>& given,
                                       std::span<const Op> rows, std::string_view opcode) {
  for (const Op op : rows) {
    const OpInfo& row = info(op);
    for (std::size_t slot = 0; slot < row.slot_count; ++slot) {
      const ModifierSlot& lacking = row.slots[slot];
      if (lacking.optional || lacking.field != Field::Rounding || !takes_with(row, given, slot))
        continue;
      std::string choice;
      for (const Modifier word : words(lacking)) {
        choice += (choice.empty() ? "." : ", .") + std::string(name(word));
      }
      return UnknownFault{"bad-operand", quoted(opcode) + " lacks a rounding: one of " + choice,
                          "write " + std::string(row.mnemonic) + "." +
                              std::string(name(words(lacking).front())) +
                              std::string(opcode.substr(row.mnemonic.size()))};
    }
  }
  return std::nullopt;
}

UnknownFault of_opcode(std::string_view opcode, bool rounding_required) {
  if (const OrderFault fault = order_fault(opcode); fault.found()) {
    return {"bad-operand", fault.message, fault.cure};
  }
  const std::string passed = " is not in the op table; it is passed on as written and not checked";
  const auto given = words_of(opcode);
  const auto rows = ops_with_mnemonic(given[0]);
  if (rows.empty()) {
    Nearest nearest(given[0]);
    for (const OpInfo& row : op_table()) nearest.offer(row.mnemonic);
    return unknown(quoted(opcode) + passed,
                   nearest.name().empty()
                       ? std::string()
                       : "was " + quoted(nearest.name()) + " meant, not " + quoted(given[0]) + "?");
  }
  for (std::size_t i = 1; i < given.size(); ++i) {
    if (modifier_from_text(given[i]) != Modifier::none) continue;
    Nearest nearest(given[i]);
    for (const Op op : rows) {
      for (const ModifierSlot& slot : info(op).modifier_slots()) {
        for (const Modifier word : words(slot)) nearest.offer(name(word));
      }
    }
    return unknown(quoted(opcode) + passed,
                   nearest.name().empty() ? std::string()
                                          : "was '." + std::string(nearest.name()) +
                                                "' meant, not '." + std::string(given[i]) + "'?");
  }
  if (rounding_required) {
    if (auto fault = lacks_word(given, rows, opcode)) return *fault;
  }
  return unknown(quoted(opcode) + passed,
                 "see the forms of " + quoted(given[0]) + " in docs/isa.md");
}

// The only type among the words of an opcode, `Type::none` if there is none or more than one.
Type only_type(std::string_view opcode) {
  Type found = Type::none;
  for (const std::string_view word : words_of(opcode)) {
    const Type type = as_type(modifier_from_text(word));
    if (type == Type::none) continue;
    if (found != Type::none) return Type::none;
    found = type;
  }
  return found;
}

// The declaration of the register with that name, in whatever scope, or nullptr.
const RegisterDecl* declaration_of(const Module& module, const Function& function,
                                   std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  for (const RegisterDecl& decl : function.registers) {
    const std::string_view own = module.text(decl.name);
    if (decl.numbered ? own == name.substr(0, digits) && digits < name.size() : own == name)
      return &decl;
  }
  return nullptr;
}

// A float for an integer, or the reverse, where an opcode of one type names its result.
std::optional<UnknownFault> wrong_result(const Module& module, const Function& function,
                                         std::string_view text) {
  const std::string_view opcode = opcode_of(text);
  const Type type = only_type(opcode);
  const auto first = std::min(text.find_first_not_of(" \t\n", opcode.size()), text.size());
  const std::string_view operand =
      text.substr(first, text.find_first_of(" \t\n,;|{[", first) - first);
  const RegisterDecl* decl = declaration_of(module, function, operand);
  if (decl == nullptr || decl->vector > 1) return std::nullopt;
  const auto whole = [](Type t) {
    return kind(t) == TypeKind::Signed || kind(t) == TypeKind::Unsigned;
  };
  const auto real = [](Type t) { return t == Type::f32 || t == Type::f64; };
  if (!(whole(type) && real(decl->type)) && !(real(type) && whole(decl->type))) return std::nullopt;
  return UnknownFault{"type-mismatch",
                      quoted(opcode) + " is not in the op table, but its only type is ." +
                          std::string(name(type)) + ", and operand 1, " + quoted(operand) +
                          ", is ." + std::string(name(decl->type)),
                      "use a register of that type or an untyped .bN of its width, or convert with "
                      "cvt"};
}

}  // namespace

UnknownFault check_opcode(std::string_view instruction) {
  const std::string_view opcode = opcode_of(instruction);
  return in_table(opcode) ? UnknownFault{} : of_opcode(opcode, true);
}

UnknownFault check_unknown(const Module& module, const Function& function,
                           const Instruction& instruction) {
  const std::string_view text = module.text(instruction.text);
  TargetName target;
  const bool modern = !parse_target_name(module.target, target) || target.sm >= kRoundingRequired;
  UnknownFault fault = of_opcode(opcode_of(text), modern);
  if (fault.rule == "unknown-instruction") {
    if (auto wrong = wrong_result(module, function, text)) return *wrong;
  }
  return fault;
}

}  // namespace ptxgen::inline v0::ptx
