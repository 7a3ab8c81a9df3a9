// src/ptx/row_shape.hpp - common shapes of operand lists
#pragma once

#include <algorithm>
#include <cstdint>

#include "ptxgen/ptx/ops.hpp"

namespace ptxgen::inline v0::ptx {

/// Whether a modifier is one of those of the slot.
[[nodiscard]] inline bool allows(const ModifierSlot& slot, Modifier modifier) noexcept {
  const auto allowed = allowed_modifiers(slot);
  return std::find(allowed.begin(), allowed.end(), modifier) != allowed.end();
}

/// Of a row: how it begins, and whether it may end there.
struct RowShape {
  std::uint8_t plain = 0;  ///< so many leading operands are required and not joined
  bool more = false;       ///< another operand is required after them
  std::uint16_t ties =
      0;  ///< slots of the modifiers to which operands after them are tied, as bits
  /// Memory operands whose address counts in the state space of the field `from`, as bits.
  std::uint16_t from_source = 0;
};
[[nodiscard]] const RowShape& row_shape(Op op) noexcept;

/// Of a memory operand of the row: the field whose modifier is the state space that its address
/// counts in; the address is generic where the opcode has no such modifier.
[[nodiscard]] inline Field address_field(const OpInfo& row, const OperandSpec& spec) noexcept {
  const auto place = &spec - row.operands.data();
  const bool source = (row_shape(row.op).from_source >> place & 1u) != 0;
  return source ? Field::SourceSpace : Field::Space;
}

}  // namespace ptxgen::inline v0::ptx
