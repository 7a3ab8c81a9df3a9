// src/builder/moves.hpp - results that are only moved into a variable
#pragma once

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::detail {

/// `add t, a, b; mov v, t;` with no other mention of t becomes `add v, a, b;`, so that `v = a + b`
/// is one instruction. Only once the kernel is complete is it known that nothing else uses t.
/// Statements under a guard stay, and so do kernels with instructions outside the op table.
void fold_moves(ptx::Function& function);

}  // namespace ptxgen::inline v0::detail
