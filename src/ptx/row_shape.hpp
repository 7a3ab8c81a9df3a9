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
};
[[nodiscard]] const RowShape& row_shape(Op op) noexcept;

}  // namespace ptxgen::inline v0::ptx
