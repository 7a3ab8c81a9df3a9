// src/kernels/gemv/blocks.hpp - the generator's parts for weights in blocks
#pragma once

#include "kernels/gemv/block_dot.hpp"
#include "kernels/gemv/emit.hpp"

namespace ptxgen::inline v0::gemv {

/// Fills `kit.staged` with the elements of x of the window's steps. All threads of the block come
/// here; barriers before and after it are the caller's.
void stage_x(Kit& kit, const Segment& window);

}  // namespace ptxgen::inline v0::gemv
