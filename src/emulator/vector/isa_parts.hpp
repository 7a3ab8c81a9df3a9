// src/emulator/vector/isa_parts.hpp - functions that each instruction set defines
#pragma once

#include "emulator/vector/isa.hpp"

// One namespace for each instruction set, all with the same functions.
#define PTXGEN_ISA_PARTS(isa)                                             \
  namespace ptxgen::inline v0::emulator::isa {                            \
  Handler alu_handler(Alu which) noexcept;                                \
  Handler compare_handler(Compare comparison, CompareType type) noexcept; \
  Handler select_handler(unsigned lane_bytes) noexcept;                   \
  Handler lookup_handler() noexcept;                                      \
  Handler hot_memory_handler(const HotAccess& access) noexcept;           \
  }
PTXGEN_ISA_PARTS(isa_baseline)
PTXGEN_ISA_PARTS(isa_avx2)
PTXGEN_ISA_PARTS(isa_avx512)
#undef PTXGEN_ISA_PARTS
