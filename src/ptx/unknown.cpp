// src/ptx/unknown.cpp - diagnosing instructions outside the op table
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/order_modifiers.hpp"
#include "ptxgen/ptx/target.hpp"
#include "ptxgen/ptx/unknown.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::ptx {

namespace {

constexpr std::uint16_t kRoundingRequired = 75;  // ptxas 13.0 takes `mad.f32` below

std::string_view opcode_of(std::string_view text) {
  return text.substr(0, text.find_first_of(" \t\n{[;"));
}

std::vector<std::string_view> parts_of(std::string_view opcode) {
  std::vector<std::string_view> modifiers;
  for (std::size_t at = 0; at <= opcode.size();) {
    const std::size_t dot = std::min(opcode.find('.', at), opcode.size());
    modifiers.push_back(opcode.substr(at, dot - at));
    at = dot + 1;
  }
  return modifiers;
}

// Letters to change, add or leave out to make one modifier of the other.
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

constexpr std::size_t kNoSlot = kMaxModifiers;

// Whether a row allows these modifiers, in any order, with one of the required `slot` added.
bool takes_with(const OpInfo& row, const std::vector<std::string_view>& parts, std::size_t slot) {
  std::vector<Modifier> left;
  for (std::size_t i = 1; i < parts.size(); ++i) left.push_back(modifier_from_text(parts[i]));
  for (std::size_t i = 0; i < row.slot_count; ++i) {
    if (i == slot) continue;
    const auto legal = allowed_modifiers(row.slots[i]);
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
  const auto parts = parts_of(opcode);
  const auto rows = ops_with_mnemonic(parts[0]);
  return std::any_of(rows.begin(), rows.end(),
                     [&](Op op) { return takes_with(info(op), parts, kNoSlot); });
}

// `mad.f32` and the like: all modifiers are known, but a rounding is missing.
std::optional<UnknownFault> lacks_modifier(const std::vector<std::string_view>& parts,
                                           std::span<const Op> rows, std::string_view opcode) {
  for (const Op op : rows) {
    const OpInfo& row = info(op);
    for (std::size_t slot = 0; slot < row.slot_count; ++slot) {
      const ModifierSlot& lacking = row.slots[slot];
      if (lacking.optional || lacking.field != Field::Rounding || !takes_with(row, parts, slot))
        continue;
      std::string choice;
      for (const Modifier modifier : allowed_modifiers(lacking)) {
        choice += format_text("{}.{}", choice.empty() ? "" : ", ", name(modifier));
      }
      return UnknownFault{
          "bad-operand", format_text("'{}' lacks a rounding: one of {}", opcode, choice),
          format_text("write {}.{}{}", row.mnemonic, name(allowed_modifiers(lacking).front()),
                      opcode.substr(row.mnemonic.size()))};
    }
  }
  return std::nullopt;
}

UnknownFault of_opcode(std::string_view opcode, bool rounding_required) {
  if (const OrderFault fault = order_fault(opcode); fault.found()) {
    return {"bad-operand", fault.message, fault.cure};
  }
  const std::string message = format_text(
      "'{}' is not in the op table; it is passed on as written and not checked", opcode);
  const auto parts = parts_of(opcode);
  const auto rows = ops_with_mnemonic(parts[0]);
  if (rows.empty()) {
    Nearest nearest(parts[0]);
    for (const OpInfo& row : op_table()) nearest.offer(row.mnemonic);
    return unknown(message, nearest.name().empty() ? std::string()
                                                   : format_text("was '{}' meant, not '{}'?",
                                                                 nearest.name(), parts[0]));
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (modifier_from_text(parts[i]) != Modifier::none) continue;
    Nearest nearest(parts[i]);
    for (const Op op : rows) {
      for (const ModifierSlot& slot : info(op).modifier_slots()) {
        for (const Modifier modifier : allowed_modifiers(slot)) nearest.offer(name(modifier));
      }
    }
    return unknown(message, nearest.name().empty() ? std::string()
                                                   : format_text("was '.{}' meant, not '.{}'?",
                                                                 nearest.name(), parts[i]));
  }
  if (rounding_required) {
    if (auto fault = lacks_modifier(parts, rows, opcode)) return *fault;
  }
  return unknown(message, format_text("see the forms of '{}' in docs/isa.md", parts[0]));
}

// The only type among the modifiers of an opcode, `Type::none` if there is none or more than one.
Type only_type(std::string_view opcode) {
  Type found = Type::none;
  for (const std::string_view modifier : parts_of(opcode)) {
    const Type type = as_type(modifier_from_text(modifier));
    if (type == Type::none) continue;
    if (found != Type::none) return Type::none;
    found = type;
  }
  return found;
}

// The declaration of the register with that name, in any scope, or nullptr.
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
  const auto integer = [](Type t) {
    return kind(t) == TypeKind::Signed || kind(t) == TypeKind::Unsigned;
  };
  const auto real = [](Type t) { return t == Type::f32 || t == Type::f64; };
  if (!(integer(type) && real(decl->type)) && !(real(type) && integer(decl->type)))
    return std::nullopt;
  return UnknownFault{
      "type-mismatch",
      format_text("'{}' is not in the op table, but its only type is .{}, and operand 1, "
                  "'{}', is .{}",
                  opcode, name(type), operand, name(decl->type)),
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
