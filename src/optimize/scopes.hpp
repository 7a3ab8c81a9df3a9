// src/optimize/scopes.hpp - registers visible at a statement
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::optimize {

/// The scopes of statements. Linear in the body; a body without braces costs
/// nothing. Keeps references to its arguments.
class Scopes {
 public:
  Scopes(const ptx::Module& module, const ptx::Function& function);
  /// The innermost scope around a statement.
  [[nodiscard]] std::uint32_t of(std::uint32_t statement) const noexcept {
    return nested_ ? scope_of_[statement] : 0;
  }
  /// Whether what is declared in `scope` is known in `inner`.
  [[nodiscard]] bool encloses(std::uint32_t scope, std::uint32_t inner) const noexcept;
  /// Whether the statement may name the register: its scope is around the statement, and no scope
  /// in between declares something else by that name.
  [[nodiscard]] bool visible(ptx::Register reg, std::uint32_t statement) const {
    return !nested_ || names(reg, of(statement));
  }

  /// The same of a label.
  [[nodiscard]] bool visible(ptx::LabelId label, std::uint32_t statement) const;

 private:
  [[nodiscard]] bool names(ptx::Register reg, std::uint32_t inner) const;
  [[nodiscard]] bool hides(std::uint32_t scope, const std::string& name) const;

  const ptx::Module* module_;
  const ptx::Function* function_;
  bool nested_ = false;
  std::vector<std::uint32_t> scope_of_, parent_;
  // Of each scope but the outermost: its declarations, variables and labels.
  std::vector<std::vector<std::uint32_t>> declared_, variables_, labels_;
};

}  // namespace ptxgen::inline v0::optimize
