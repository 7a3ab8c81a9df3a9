// src/emulator/vector/alu.hpp - whole-warp handlers for frequent rows
#pragma once

#include <string_view>

#include "emulator/state/code.hpp"

namespace ptxgen::inline v0::emulator {

/// A handler for all 32 lanes at once, or nullptr. Fills the operands of `step`.
[[nodiscard]] Handler vector_handler(const LaneDetail& detail, Step& step);

/// The instruction set of the vector handlers of this process: "baseline", "avx2", "avx512". Chosen
/// once, by the processor.
[[nodiscard]] std::string_view vector_isa() noexcept;

}  // namespace ptxgen::inline v0::emulator
