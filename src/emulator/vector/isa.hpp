// src/emulator/vector/isa.hpp - whole-warp handlers of each instruction set
#pragma once

#include <cstdint>

#include "emulator/lane/isa.hpp"
#include "emulator/memory/steps.hpp"
#include "emulator/state/code.hpp"

namespace ptxgen::inline v0::emulator {

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
