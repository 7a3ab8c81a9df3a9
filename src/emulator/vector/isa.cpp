// src/emulator/vector/isa.cpp - the instruction set of this processor
#include "emulator/vector/isa.hpp"

#include "emulator/vector/isa_parts.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

constexpr IsaHandlers kBaseline = {&isa_baseline::alu_handler, &isa_baseline::compare_handler,
                                   &isa_baseline::select_handler, &isa_baseline::lookup_handler,
                                   &isa_baseline::hot_memory_handler};
#if defined(PTXGEN_ISA_X86)
constexpr IsaHandlers kAvx2 = {&isa_avx2::alu_handler, &isa_avx2::compare_handler,
                               &isa_avx2::select_handler, &isa_avx2::lookup_handler,
                               &isa_avx2::hot_memory_handler};
constexpr IsaHandlers kAvx512 = {&isa_avx512::alu_handler, &isa_avx512::compare_handler,
                                 &isa_avx512::select_handler, &isa_avx512::lookup_handler,
                                 &isa_avx512::hot_memory_handler};
#endif

}  // namespace

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

const IsaHandlers& handlers(Isa isa) noexcept {
#if defined(PTXGEN_ISA_X86)
  if (isa == Isa::Avx2) return kAvx2;
  if (isa == Isa::Avx512) return kAvx512;
#endif
  static_cast<void>(isa);
  return kBaseline;
}

}  // namespace ptxgen::inline v0::emulator
