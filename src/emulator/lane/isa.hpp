// src/emulator/lane/isa.hpp - instruction sets that loops over lanes are compiled for
#pragma once

#include <cstdint>
#include <string_view>

namespace ptxgen::inline v0::emulator {

/// Files that use `PTXGEN_ISA_NAMESPACE` are compiled once for each.
enum class Isa : std::uint8_t {
  Baseline,  ///< every processor of the architecture
  Avx2,      ///< x86-64 with AVX2, FMA, F16C
  Avx512,    ///< and AVX-512 F, VL, BW, DQ
};
inline constexpr Isa kIsas[] = {Isa::Baseline, Isa::Avx2, Isa::Avx512};

/// Whether this build has loops for it and this processor can run them.
[[nodiscard]] bool offers(Isa isa) noexcept;
/// The best available one.
[[nodiscard]] Isa best_isa() noexcept;
[[nodiscard]] std::string_view name(Isa isa) noexcept;

}  // namespace ptxgen::inline v0::emulator
