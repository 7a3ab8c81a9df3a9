// src/emulator/machine/grid_sync.hpp - traps of a grid-wide barrier outside of cooperative launches
#pragma once

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::emulator {

/// Whether a `trap` is the one that nvcc emits before a grid barrier of cooperative groups, for
/// launches without a workspace: its guard, the guarded branch before it, or one to the label
/// before it depends on %envreg1 or %envreg2. The data flow analysis ignores the order of
/// statements.
[[nodiscard]] bool guards_grid_sync(const ptx::Function& function, const ptx::Instruction& trap);

}  // namespace ptxgen::inline v0::emulator
