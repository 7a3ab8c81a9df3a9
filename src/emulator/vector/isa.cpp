// src/emulator/vector/isa.cpp - the whole-warp handlers of each instruction set
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

const IsaHandlers& handlers(Isa isa) noexcept {
#if defined(PTXGEN_ISA_X86)
  if (isa == Isa::Avx2) return kAvx2;
  if (isa == Isa::Avx512) return kAvx512;
#endif
  static_cast<void>(isa);
  return kBaseline;
}

}  // namespace ptxgen::inline v0::emulator
