// src/kernels/gemv/blocks.hpp - the generator's parts for weights in blocks
#pragma once

#include "kernels/gemv/block_dot.hpp"
#include "kernels/gemv/emit.hpp"

namespace ptxgen::inline v0::gemv {

/// Fills `to` with the elements of the row `x` that belong to the window's steps. All threads of
/// the block come here; barriers before and after it are the caller's.
void stage_x(Kit& kit, const Segment& window, const Ptr<b8>& x, const Ptr<b8, Shared>& to);

/// Repacked rows: the place of the thread's weights, the first loads of a segment, the products of
/// a window with `rows` rows of a warp.
void place_repacked(Kit& kit);
void request_repacked(Kit& kit, const Segment& segment);
void add_repacked_rows(Kit& kit, const Segment& window, std::uint32_t rows, Sums& sums);

}  // namespace ptxgen::inline v0::gemv
