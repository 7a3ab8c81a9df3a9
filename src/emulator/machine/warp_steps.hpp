// src/emulator/machine/warp_steps.hpp - rows that exchange values between lanes
#pragma once

#include <string>
#include <string_view>

#include "emulator/state/code.hpp"

namespace ptxgen::inline v0::emulator {

/// shfl, vote, match, redux, elect, activemask, bar.warp.sync. The handler's operands are
/// Code::lanes[step.detail], its mode is step.immediate (a ptx::Modifier).
struct WarpRow {
  ptx::Op op;
  Handler run;
  bool has_members;  ///< the last source is a member mask, whose lanes synchronise first
};
/// nullptr for other rows.
[[nodiscard]] const WarpRow* find_warp_row(ptx::Op op) noexcept;

/// vprintf, __assertfail, malloc, free, cudaGraphSetConditional: the emulator provides them.
[[nodiscard]] bool is_system_function(std::string_view name) noexcept;
[[nodiscard]] std::string system_function_names();

/// Whether a global access shows the order in which blocks execute it; decode/control.cpp.
[[nodiscard]] bool depends_on_block_order(const ptx::Function& function,
                                          const ptx::Instruction& instruction);

}  // namespace ptxgen::inline v0::emulator
