// src/ptx/requirements.cpp - target and version requirements of instructions
#include "ptx/requirements.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::ptx {

namespace {

constexpr Version kAnyVersion{255, 255};

// The modifiers of one instruction, asked for many times.
class ModifierSet {
 public:
  explicit ModifierSet(const Instruction& instruction)
      : modifiers_(instruction.modifiers.data(), info(instruction.op).slot_count) {
    for (const Modifier modifier : modifiers_) filter_ |= modifier_filter(modifier);
  }

  bool satisfy(const Need& need) const {
    if ((need.filter & ~filter_) != 0) return false;
    const auto modifiers = condition(need);
    return std::all_of(modifiers.begin(), modifiers.end(), [&](Modifier modifier) {
      return std::find(modifiers_.begin(), modifiers_.end(), modifier) != modifiers_.end();
    });
  }

 private:
  std::span<const Modifier> modifiers_;
  std::uint64_t filter_ = 0;
};

bool same_condition(const Need& a, const Need& b) {
  const auto x = condition(a);
  const auto y = condition(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

std::string target_text(const Requirement& r) { return name(TargetName{r.sm, r.variant}); }

std::string subject(const Instruction& instruction, const Need& need) {
  std::string text = "'";
  for (const Modifier modifier : condition(need)) text += "." + std::string(name(modifier));
  if (need.condition_count != 0) text += "' on '";
  text += info(instruction.op).mnemonic;
  const OpInfo& row = info(instruction.op);
  if (need.condition_count == 0) {
    for (std::size_t i = 0; i < row.slot_count; ++i) {
      if (instruction.modifiers[i] != Modifier::none) {
        text += "." + std::string(name(instruction.modifiers[i]));
      }
    }
  }
  return text + "'";
}

// What a number of tensormap.replace needs beyond its opcode.
struct ValueNeed {
  Modifier field;
  std::uint64_t first;
  std::uint64_t last;
  std::string_view subject;
  std::array<Requirement, 5> alternatives;
  std::size_t count;
};
constexpr ValueNeed kValueNeeds[] = {
    {Modifier::elemtype,
     13,
     15,
     "a number of 13 to 15 of '.elemtype' on 'tensormap.replace'",
     {{{{8, 7}, 100, Variant::Architecture},
       {{8, 8}, 100, Variant::Family},
       {{9, 0}, 110, Variant::Family},
       {{8, 7}, 120, Variant::Architecture},
       {{8, 8}, 120, Variant::Family}}},
     5},
    {Modifier::swizzle_mode,
     4,
     4,
     "number 4 of '.swizzle_mode' on 'tensormap.replace'",
     {{{{8, 8}, 103, Variant::Architecture}}},
     1},
};

const ValueNeed* value_need(const Function& function, const Instruction& instruction) {
  if (!instruction.is(Op::tensormap_replace_mode)) return nullptr;
  const auto operands = function.operands_of(instruction);
  const Modifier field = instruction.get(Field::TensorMapField);
  for (const ValueNeed& need : kValueNeeds) {
    if (field != need.field || operands.size() < 2) continue;
    if (operands[1].value >= need.first && operands[1].value <= need.last) return &need;
  }
  return nullptr;
}

}  // namespace

std::string text(Version version) { return format_text("{}.{}", version.major, version.minor); }

TargetFault judge(std::string_view subject, std::span<const Requirement> alternatives,
                  TargetName target, Version version) {
  const Requirement* best = nullptr;
  for (const Requirement& r : alternatives) {
    if (offers(target, r) && (best == nullptr || r.version < best->version)) best = &r;
  }
  if (best == nullptr) {
    std::string wanted;
    for (const Requirement& r : alternatives) {
      wanted += format_text("{}{}", wanted.empty() ? "" : " or ", target_text(r));
      if (r.variant == Variant::None) wanted += " or newer";
    }
    return {"target-lacks",
            format_text("{} needs {}, the target is {}", subject, wanted, name(target)),
            {}};
  }
  if (version < best->version) {
    return {
        "version-too-low",
        format_text("{} needs PTX {}, .version is {}", subject, text(best->version), text(version)),
        best->version};
  }
  return {{}, {}, best->version};
}

const Need* illegal_combination(const Instruction& instruction) noexcept {
  const ModifierSet modifiers(instruction);
  for (const Need& need : needs(info(instruction.op))) {
    if (need.requirement.never() && modifiers.satisfy(need)) return &need;
  }
  return nullptr;
}

TargetFault judge(const Function& function, const Instruction& instruction, TargetName target,
                  Version version) {
  TargetFault result;
  const auto take = [&](TargetFault next) {
    const Version lowest = std::max(result.lowest, next.lowest);
    if (result.rule.empty() && !next.rule.empty()) result = std::move(next);
    result.lowest = lowest;
  };
  const ModifierSet modifiers(instruction);
  const auto all = needs(info(instruction.op));
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i + 1;
    // Modifiers that never go together are a matter of the operand check.
    if (modifiers.satisfy(all[i]) && !all[i].requirement.never()) {
      // Consecutive needs with one condition are alternatives.
      while (end < all.size() && same_condition(all[i], all[end])) ++end;
      Requirement alternatives[8];
      std::size_t count = 0;
      for (std::size_t k = i; k < end && count < std::size(alternatives); ++k) {
        alternatives[count++] = all[k].requirement;
      }
      const std::span<const Requirement> offered{alternatives, count};
      // The common case costs no text.
      if (count == 1 && offers(target, offered[0]) && !(version < offered[0].version)) {
        result.lowest = std::max(result.lowest, offered[0].version);
      } else {
        take(judge(subject(instruction, all[i]), offered, target, version));
      }
    }
    i = end;
  }
  if (const ValueNeed* need = value_need(function, instruction)) {
    take(judge(need->subject, {need->alternatives.data(), need->count}, target, version));
  }
  const auto special = [&](const Operand& o) {
    if (o.kind != OperandKind::Special) return;
    const SpecialInfo& reg = info(static_cast<SpecialRegister>(o.id));
    if (offers(target, reg.requirement) && !(version < reg.requirement.version)) {
      result.lowest = std::max(result.lowest, reg.requirement.version);
      return;
    }
    take(judge("'%" + std::string(reg.text) + "'", {&reg.requirement, 1}, target, version));
  };
  for (const Operand& o : function.operands_of(instruction)) {
    special(o);
    if (o.kind == OperandKind::Vector) {
      for (const Operand& element : function.elements(o)) special(element);
    }
  }
  return result;
}

bool operands_have_needs(const Function& function, const Instruction& instruction) noexcept {
  if (value_need(function, instruction) != nullptr) return true;
  const auto special = [](const Operand& o) { return o.kind == OperandKind::Special; };
  const auto operands = function.operands_of(instruction);
  return std::any_of(operands.begin(), operands.end(), [&](const Operand& o) {
    if (o.kind != OperandKind::Vector) return special(o);
    const auto elements = function.elements(o);
    return std::any_of(elements.begin(), elements.end(), special);
  });
}

TargetFault judge(const RegisterDecl& decl, TargetName target, Version version) {
  if (decl.type != Type::b128) return {};
  constexpr Requirement kWide{{8, 3}, 70, Variant::None};
  return judge("'.reg .b128'", {&kWide, 1}, target, version);
}

TargetFault judge(const Variable& variable, TargetName target, Version version) {
  constexpr Requirement kMasks{{7, 1}, 0, Variant::None};
  for (const InitialValue& piece : variable.initial) {
    if (piece.kind == InitialValue::Kind::Masked) {
      return judge("one byte of an address as initial value", {&kMasks, 1}, target, version);
    }
  }
  return {};
}

InstructionFault check_target(const Function& function, const Instruction& instruction,
                              TargetName target, Version version) {
  TargetFault found = judge(function, instruction, target, version);
  return {found.rule, std::move(found.message)};
}

Version lowest_version(const Module& module, std::string_view target_text) {
  TargetName named;
  if (!parse_target_name(target_text, named)) static_cast<void>(target(target_text));
  Version lowest{1, 0};
  if (const Target* row = find_target(target_text)) lowest = row->version;
  const auto take = [&](const TargetFault& found, const Instruction* statement) {
    if (!found.rule.empty()) {
      Error error(Stage::Build, std::string(found.rule), found.message);
      error.target = target_text;
      if (statement != nullptr) {
        error.site = module.site_of(*statement);
        error.line = statement->line;
      }
      throw error.refresh();
    }
    lowest = std::max(lowest, found.lowest);
  };
  for (const Variable& variable : module.variables)
    take(judge(variable, named, kAnyVersion), nullptr);
  for (const Function& function : module.functions) {
    for (const RegisterDecl& decl : function.registers) {
      take(judge(decl, named, kAnyVersion), nullptr);
    }
    for (const Variable& variable : function.variables) {
      take(judge(variable, named, kAnyVersion), nullptr);
    }
    for (const Directive& directive : function.directives) {
      const DirectiveInfo& row = info(directive.kind);
      take(judge("'." + std::string(row.text) + "'", {&row.requirement, 1}, named, kAnyVersion),
           nullptr);
    }
    for (const Instruction& statement : function.body) {
      if (statement.kind != StatementKind::Instruction) continue;
      take(judge(function, statement, named, kAnyVersion), &statement);
    }
  }
  return lowest;
}

}  // namespace ptxgen::inline v0::ptx
