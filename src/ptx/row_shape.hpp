// src/ptx/row_shape.hpp - what most operand lists of a row look like
#pragma once

#include <cstdint>

#include "ptxgen/ptx/ops.hpp"

namespace ptxgen::inline v0::ptx {

/// Of a row: how it begins, and whether it may end there.
struct RowShape {
  std::uint8_t plain = 0;  ///< so many operands, from the first, are always there and not joined
  bool more = false;       ///< one behind them must be there too
  std::uint16_t ties = 0;  ///< slots of the words to which operands behind them are tied, as bits
  /// Memory operands whose address counts in the state space of the field `from`, as bits.
  std::uint16_t from_source = 0;
};
[[nodiscard]] const RowShape& row_shape(Op op) noexcept;

/// Of a memory operand of the row: the field whose word is the state space that its address counts
/// in; the address is generic where the opcode has no such word.
[[nodiscard]] inline Field address_field(const OpInfo& row, const OperandSpec& spec) noexcept {
  const auto place = &spec - row.operands.data();
  const bool source = (row_shape(row.op).from_source >> place & 1u) != 0;
  return source ? Field::SourceSpace : Field::Space;
}

}  // namespace ptxgen::inline v0::ptx
