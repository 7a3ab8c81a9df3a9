// src/optimize/fresh_names.cpp - unused register and label names
#include "optimize/fresh_names.hpp"

#include <algorithm>

#include "support/numbers.hpp"

namespace ptxgen::inline v0::optimize {

using ptx::NameId;

namespace {

/// The number that `digits` is as part of a register's name, where `%x007` is not number 7.
std::optional<std::uint32_t> register_number(std::string_view digits) {
  if (digits.empty() || (digits.size() > 1 && digits[0] == '0')) return std::nullopt;
  return parse_number<std::uint32_t>(digits);
}

}  // namespace

FreshNames::FreshNames(ptx::Module& module, const ptx::Function& function, std::string_view stem)
    : module_(&module), stem_(stem) {
  for (const ptx::RegisterDecl& decl : function.registers) {
    if (!decl.numbered) {
      add(decl.name);
    } else if (auto rest = rest_of(decl.name)) {
      numbered_.push_back({*std::move(rest), decl.count});
    }
  }
  for (const ptx::Label& label : function.labels) add(label.name);
  for (const auto* list : {&function.returns, &function.parameters, &function.variables}) {
    for (const ptx::Variable& variable : *list) add(variable.name);
  }
  // A declaration in the function would hide a symbol of the module that the function refers to.
  for (const ptx::Operand& operand : function.operands) {
    const ptx::OperandKind kind =
        operand.kind == ptx::OperandKind::Memory ? operand.base : operand.kind;
    if (kind == ptx::OperandKind::Symbol) add(module.symbols[operand.id].name);
  }
}

std::optional<std::string> FreshNames::rest_of(NameId name) const {
  const std::string_view text = module_->text(name);
  if (!text.starts_with(stem_)) return std::nullopt;
  return std::string(text.substr(stem_.size()));
}

void FreshNames::add(NameId name) {
  if (auto rest = rest_of(name)) plain_.insert(*std::move(rest));
}

void FreshNames::lengthen_stem() {
  while (!plain_.empty() || !numbered_.empty()) {
    stem_ += '_';
    std::unordered_set<std::string> plain;
    for (const std::string& rest : plain_) {
      if (rest.starts_with('_')) plain.insert(rest.substr(1));
    }
    plain_ = std::move(plain);
    std::erase_if(numbered_, [](const Numbered& n) { return !n.rest.starts_with('_'); });
    for (Numbered& numbered : numbered_) numbered.rest.erase(0, 1);
  }
}

bool FreshNames::is_taken(const std::string& rest) const {
  if (plain_.contains(rest)) return true;
  return std::any_of(numbered_.begin(), numbered_.end(), [&](const Numbered& numbered) {
    if (!rest.starts_with(numbered.rest)) return false;
    const auto number = register_number(std::string_view(rest).substr(numbered.rest.size()));
    return number && *number < numbered.count;
  });
}

bool FreshNames::begins_a_name(const std::string& rest) const {
  const auto begins = [&](const std::string& name) { return name.starts_with(rest); };
  return std::any_of(plain_.begin(), plain_.end(), begins) ||
         std::any_of(numbered_.begin(), numbered_.end(),
                     [&](const Numbered& numbered) { return begins(numbered.rest); });
}

NameId FreshNames::name() {
  for (std::size_t left = plain_.size() + numbered_.size(); is_taken(std::to_string(counter_));
       ++counter_, --left) {
    if (left == 0) {
      lengthen_stem();
      break;
    }
  }
  return module_->names.intern(stem_ + std::to_string(counter_++));
}

NameId FreshNames::prefix() {
  // Each declared name begins with one candidate at most, so this ends.
  while (begins_a_name(std::to_string(counter_) + '_')) ++counter_;
  return module_->names.intern(stem_ + std::to_string(counter_++) + '_');
}

}  // namespace ptxgen::inline v0::optimize
