// src/emulator/machine/warp_steps.hpp - rows that pass values between the lanes of a warp
#pragma once

#include <string>
#include <string_view>

#include "emulator/state/code.hpp"

namespace ptxgen::inline v0::emulator {

/// shfl, vote, match, redux, elect, activemask, bar.warp.sync. The handler finds its operands in
/// Code::lanes[step.detail], and what mode it has in step.immediate (a ptx::Modifier).
struct WarpRow {
  ptx::Op op;
  Handler run;
  bool has_members;  ///< the last source is a member mask whose lanes come together first
};
/// nullptr for other rows.
[[nodiscard]] const WarpRow* find_warp_row(ptx::Op op) noexcept;

/// vprintf, __assertfail, malloc, free: functions that the emulator provides.
[[nodiscard]] bool is_system_function(std::string_view name) noexcept;
[[nodiscard]] std::string system_function_names();

/// See decode_control.cpp.
[[nodiscard]] bool depends_on_block_order(const ptx::Function& function,
                                          const ptx::Instruction& instruction);

}  // namespace ptxgen::inline v0::emulator
