// src/optimize/scopes.cpp - which registers can be named at a statement
#include "optimize/scopes.hpp"

namespace ptxgen::inline v0::optimize {

Scopes::Scopes(const ptx::Function& function) : function_(&function), nested_(function.scopes > 1) {
  if (!nested_) return;
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
