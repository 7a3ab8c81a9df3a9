// ptxgen/ptx/operand_specs.hpp - specifications of all operands of an instruction
#pragma once

#include <array>
#include <cstdint>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::ptx {

/// `operand_spec` of all operands of one instruction, computed at once. Refers only to the op
/// table.
class OperandSpecs {
 public:
  OperandSpecs(const Function& function, const Instruction& instruction) noexcept;
  /// nullptr beyond the operands, and for all operands if they do not fit the row or the statement
  /// is not an instruction.
  [[nodiscard]] const OperandSpec* operator[](std::size_t i) const noexcept {
    if (i >= count_) return nullptr;
    return specs_ + (in_order_ ? i : places_[i]);
  }
  /// Whether the number of operands and the use of `|` match the row.
  [[nodiscard]] bool fit() const noexcept { return specs_ != nullptr; }

 private:
  const OperandSpec* specs_ = nullptr;
  std::size_t count_ = 0;
  bool in_order_ = true;
  std::array<std::uint8_t, kMaxOperands> places_;  // only set where they are not in order
};

}  // namespace ptxgen::inline v0::ptx
