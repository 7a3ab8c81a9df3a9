// src/kernels/gemv/blocks.hpp - the generator's parts for weights in blocks
#pragma once

#include <functional>
#include <span>

#include "kernels/gemv/block_dot.hpp"
#include "kernels/gemv/emit.hpp"

namespace ptxgen::inline v0::gemv {

/// Fills `to` with the elements of the row `x` that belong to the window's steps. All threads of
/// the block come here; barriers before and after it are the caller's.
void stage_x(Kit& kit, const Segment& window, const Ptr<b8>& x, const Ptr<b8, Shared>& to);

/// x of 32 elements, as each lane reads all of it: the bytes of each digit, the lowest first, then
/// scale, sum of x, and the sums of both halves.
inline constexpr std::uint32_t kGroupBytes = 112;
inline constexpr std::uint32_t kGroupFloatsAt = 96;
/// Fills `to` with all of x, a group after the other.
void stage_groups(Kit& kit, const Ptr<b8, Shared>& to);

/// Outputs of one lane: those from `first` on, 32 apart. `sums` has one of each matrix; `inside` is
/// empty where all lanes have the output.
using FinishOutput = std::function<void(const Value<u32>& out, std::vector<Value<f32>> sums,
                                        const std::optional<Pred>& inside)>;
/// The strip of a block, of which every lane has `rows` rows of its own in each of the matrices,
/// which have one x and one n.
void emit_lane_strip(std::span<Kit* const> kits, const Value<u32>& block, std::uint32_t rows,
                     const FinishOutput& finish);
/// Weights of a lane's step: whole words, and for q6_k two blocks.
[[nodiscard]] std::uint32_t lane_step(const BlockFormat& format) noexcept;

/// Repacked rows: the place of the thread's weights, the first loads of a segment, the products of
/// a window with `rows` rows of a warp.
void place_repacked(Kit& kit);
void request_repacked(Kit& kit, const Segment& segment);
void add_repacked_rows(Kit& kit, const Segment& window, std::uint32_t rows, Sums& sums);

}  // namespace ptxgen::inline v0::gemv
