// src/emulator/vector/isa.hpp - instruction sets that whole-warp handlers are compiled for
#pragma once

#include <cstdint>
#include <string_view>

#include "emulator/memory/steps.hpp"
#include "emulator/state/code.hpp"

namespace ptxgen::inline v0::emulator {

/// Files that use `PTXGEN_ISA_NAMESPACE` are compiled once for each.
enum class Isa : std::uint8_t {
  Baseline,  ///< every processor of the architecture
  Avx2,      ///< x86-64 with AVX2, FMA, F16C
  Avx512,    ///< and AVX-512 F, VL, BW, DQ
};

/// Whether this build has handlers for it and this processor can run them.
[[nodiscard]] bool offers(Isa isa) noexcept;
/// The best available one.
[[nodiscard]] Isa best_isa() noexcept;
[[nodiscard]] std::string_view name(Isa isa) noexcept;

/// Operations of whole-warp handlers: the ids of alu.def.
enum class Alu : std::uint8_t {
#define PTXGEN_ALU(id, result, a, b, c, value) id,
#include "emulator/vector/alu.def"
  None,
};

/// Comparisons give predicates; `!=` and `==` of integers are the same for both signs.
enum class Compare : std::uint8_t { Eq, Ne, Lt, Le, Gt, Ge, EqU, NeU, LtU, LeU, GtU, GeU };
enum class CompareType : std::uint8_t { U32, S32, U64, S64, F32 };

/// Handlers of one instruction set; nullptr where there is none.
struct IsaHandlers {
  Handler (*alu)(Alu which);
  /// Step: sources a and b, `result` the predicate, `source[2]` its opposite or kNoIndex.
  Handler (*compare)(Compare comparison, CompareType type);
  /// Step: sources a and b, `source[2]` the predicate, `immediate` all ones for `!p`.
  Handler (*select)(unsigned lane_bytes);
  /// lop3. Step: sources a, b, c; `immediate` is the frame offset of the table.
  Handler (*lookup)();
  Handler (*memory)(const HotAccess& access);
};
[[nodiscard]] const IsaHandlers& handlers(Isa isa) noexcept;

}  // namespace ptxgen::inline v0::emulator
