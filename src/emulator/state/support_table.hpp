// src/emulator/state/support_table.hpp - how each row is executed, or why it is refused
#pragma once

#include <cstdint>
#include <string_view>

#include "ptxgen/ptx/ops.hpp"

namespace ptxgen::inline v0::emulator {

/// How the emulator runs the instructions of a row of the op table.
enum class Execution : std::uint8_t {
  Lane,          ///< each lane by itself, on registers: `lane_function`
  Matrix,        ///< all lanes together, on registers: `matrix_function`
  MatrixMemory,  ///< fragments between memory and registers: `matrix_layout`
  Memory,        ///< loads, stores, atomics, address conversions
  Warp,          ///< lanes exchange values: shfl, vote, match, redux, elect, activemask
  Control,       ///< control flow
  Barrier,       ///< synchronises lanes, or orders their memory accesses
  Async,         ///< mbarrier objects and cp.async
  NoEffect,      ///< a hint for the hardware, without results
  Refused,       ///< at load, see `refusal_reason`
};

[[nodiscard]] Execution execution_of(ptx::Op op) noexcept;

/// Why the emulator refuses a row, as the text after its name ("wgmma.fence: needs ..."); empty for
/// rows that it supports.
[[nodiscard]] std::string_view refusal_reason(ptx::Op op) noexcept;

}  // namespace ptxgen::inline v0::emulator
