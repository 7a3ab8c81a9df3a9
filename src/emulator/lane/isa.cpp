// src/emulator/lane/isa.cpp - the instruction set of this processor
#include "emulator/lane/isa.hpp"

namespace ptxgen::inline v0::emulator {

bool offers(Isa isa) noexcept {
#if defined(PTXGEN_ISA_X86)
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                    __builtin_cpu_supports("bmi2") != 0;
  if (isa == Isa::Avx2) return avx2;
  if (isa == Isa::Avx512) {
    return avx2 && __builtin_cpu_supports("avx512f") != 0 &&
           __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512dq") != 0;
  }
#endif
  return isa == Isa::Baseline;
}

Isa best_isa() noexcept {
  if (offers(Isa::Avx512)) return Isa::Avx512;
  return offers(Isa::Avx2) ? Isa::Avx2 : Isa::Baseline;
}

std::string_view name(Isa isa) noexcept {
  switch (isa) {
    case Isa::Avx2:
      return "avx2";
    case Isa::Avx512:
      return "avx512";
    default:
      return "baseline";
  }
}

}  // namespace ptxgen::inline v0::emulator
