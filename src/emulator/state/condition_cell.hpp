// src/emulator/state/condition_cell.hpp - what cudaGraphSetConditional writes
#pragma once

#include <cstdint>

namespace ptxgen::inline v0::emulator {

/// The memory of an allocation of kind Condition.
struct ConditionCell {
  std::uint32_t value = 0;
  std::uint32_t is_set = 0;  ///< 1 once it has a value
};

}  // namespace ptxgen::inline v0::emulator
