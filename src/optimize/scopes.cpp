// src/optimize/scopes.cpp - registers visible at a statement
#include "optimize/scopes.hpp"

namespace ptxgen::inline v0::optimize {

Scopes::Scopes(const ptx::Module& module, const ptx::Function& function)
    : module_(&module), function_(&function), nested_(function.scopes > 1) {
  if (!nested_) return;
  declared_.resize(function.scopes);
  variables_.resize(function.scopes);
  labels_.resize(function.scopes);
  for (std::uint32_t l = 0; l < function.labels.size(); ++l) {
    const std::uint32_t scope = function.labels[l].scope;
    if (scope != 0 && scope < function.scopes) labels_[scope].push_back(l);
  }
  for (std::uint32_t d = 0; d < function.registers.size(); ++d) {
    const std::uint32_t scope = function.registers[d].scope;
    if (scope != 0 && scope < function.scopes) declared_[scope].push_back(d);
  }
  for (std::uint32_t v = 0; v < function.variables.size(); ++v) {
    const std::uint32_t scope = function.variables[v].scope;
    if (scope != 0 && scope < function.scopes) variables_[scope].push_back(v);
  }
  parent_.assign(function.scopes, 0);
  scope_of_.reserve(function.body.size());
  std::uint32_t current = 0;
  for (const ptx::Instruction& statement : function.body) {
    if (statement.kind == ptx::StatementKind::ScopeBegin && statement.scope < function.scopes) {
      parent_[statement.scope] = current;
      current = statement.scope;
    }
    scope_of_.push_back(current);
    if (statement.kind == ptx::StatementKind::ScopeEnd) current = parent_[current];
  }
}

bool Scopes::hides(std::uint32_t scope, const std::string& name) const {
  const auto is_number = [](std::string_view text, std::uint32_t count) {
    if (text.empty() || text.size() > 10 || (text.size() > 1 && text[0] == '0')) return false;
    std::uint64_t value = 0;
    for (const char c : text) {
      if (c < '0' || c > '9') return false;
      value = value * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return value < count;
  };
  for (const std::uint32_t d : declared_[scope]) {
    const ptx::RegisterDecl& decl = function_->registers[d];
    const std::string_view own = module_->text(decl.name);
    if (!decl.numbered && own == name) return true;
    if (decl.numbered && name.starts_with(own) &&
        is_number(std::string_view(name).substr(own.size()), decl.count))
      return true;
  }
  for (const std::uint32_t v : variables_[scope]) {
    if (module_->text(function_->variables[v].name) == name) return true;
  }
  return false;
}

bool Scopes::names(ptx::Register reg, std::uint32_t inner) const {
  const std::uint32_t home = function_->registers[reg.decl.value].scope;
  if (!encloses(home, inner)) return false;
  if (home == inner) return true;
  const std::string name = ptx::name_of(*module_, *function_, reg);
  for (; inner != home; inner = parent_[inner]) {
    if (hides(inner, name)) return false;
  }
  return true;
}

bool Scopes::visible(ptx::LabelId label, std::uint32_t statement) const {
  const ptx::Label& wanted = function_->labels[label.value];
  if (!nested_) return true;
  std::uint32_t inner = of(statement);
  if (!encloses(wanted.scope, inner)) return false;
  for (; inner != wanted.scope; inner = parent_[inner]) {
    for (const std::uint32_t l : labels_[inner]) {
      if (function_->labels[l].name == wanted.name) return false;
    }
  }
  return true;
}

bool Scopes::encloses(std::uint32_t scope, std::uint32_t inner) const noexcept {
  // Scopes are numbered as they open: an enclosing one has the lower number.
  while (inner > scope) {
    const std::uint32_t outer = parent_[inner];
    if (outer >= inner) return false;
    inner = outer;
  }
  return inner == scope;
}

}  // namespace ptxgen::inline v0::optimize
