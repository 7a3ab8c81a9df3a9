// src/optimize/scopes.hpp - which registers can be named at a statement
#pragma once

#include <cstdint>
#include <vector>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::optimize {

/// The scopes in braces that statements stand in. Linear in the body; a body without braces costs
/// nothing. Keeps a reference to the function.
class Scopes {
 public:
  explicit Scopes(const ptx::Function& function);
  /// The innermost scope around a statement.
  [[nodiscard]] std::uint32_t of(std::uint32_t statement) const noexcept {
    return nested_ ? scope_of_[statement] : 0;
  }
  /// Whether what is declared in `scope` is known in `inner`.
  [[nodiscard]] bool encloses(std::uint32_t scope, std::uint32_t inner) const noexcept;
  /// Whether the statement may name the register.
  [[nodiscard]] bool visible(ptx::Register reg, std::uint32_t statement) const noexcept {
    return !nested_ || encloses(function_->registers[reg.decl.value].scope, of(statement));
  }

 private:
  const ptx::Function* function_;
  bool nested_ = false;
  std::vector<std::uint32_t> scope_of_, parent_;
};

}  // namespace ptxgen::inline v0::optimize
