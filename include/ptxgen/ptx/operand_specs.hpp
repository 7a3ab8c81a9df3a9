// ptxgen/ptx/operand_specs.hpp - the op table on all operands of an instruction
#pragma once

#include <array>
#include <cstdint>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::ptx {

/// `operand_spec` of every operand of one instruction, found together: for whoever asks about more
/// than one. Refers to nothing but the op table.
class OperandSpecs {
 public:
  OperandSpecs(const Function& function, const Instruction& instruction) noexcept;
  /// nullptr where the table says nothing: beyond the operands, and of all of them if they do not
  /// fit the row or the statement is no instruction.
  [[nodiscard]] const OperandSpec* operator[](std::size_t i) const noexcept {
    if (i >= count_) return nullptr;
    return specs_ + (in_order_ ? i : places_[i]);
  }
  /// Whether number and `|` of the operands are what the row admits.
  [[nodiscard]] bool fit() const noexcept { return specs_ != nullptr; }

 private:
  const OperandSpec* specs_ = nullptr;
  std::size_t count_ = 0;
  bool in_order_ = true;
  std::array<std::uint8_t, kMaxOperands> places_;  // only set where they are not in order
};

}  // namespace ptxgen::inline v0::ptx
