// src/ptx/clock.hpp - special registers that tell the time
#pragma once

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::ptx {

/// %clock and others whose value changes at each read.
[[nodiscard]] constexpr bool is_clock(SpecialRegister which) noexcept {
  switch (which) {
    case SpecialRegister::clock:
    case SpecialRegister::clock_hi:
    case SpecialRegister::clock64:
    case SpecialRegister::globaltimer:
    case SpecialRegister::globaltimer_lo:
    case SpecialRegister::globaltimer_hi:
      return true;
    default:
      return false;
  }
}

}  // namespace ptxgen::inline v0::ptx
