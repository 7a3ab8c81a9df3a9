// src/ptx/vector_elements.hpp - elements of a vector access
#pragma once

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::ptx {

/// 2, 4 or 8 with .v2, .v4 or .v8, else 1.
[[nodiscard]] inline unsigned vector_elements(const Instruction& instruction) noexcept {
  switch (instruction.get(Field::Vector)) {
    case Modifier::v2:
      return 2;
    case Modifier::v4:
      return 4;
    case Modifier::v8:
      return 8;
    default:
      return 1;
  }
}

}  // namespace ptxgen::inline v0::ptx
