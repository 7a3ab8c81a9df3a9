// src/kernels/gemv/emit.hpp - what the pieces of the generator share
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "kernels/gemv/partition.hpp"
#include "kernels/parts/words.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/kernels/gemv/plan.hpp"

namespace ptxgen::inline v0::gemv {

/// A number of the kernel: known while it is built, or computed when it runs.
using Number = std::variant<std::uint32_t, Value<u32>>;
[[nodiscard]] inline const std::uint32_t* known(const Number& n) noexcept {
  return std::get_if<std::uint32_t>(&n);
}
[[nodiscard]] Value<u32> value(KernelBuilder& k, const Number& n);
[[nodiscard]] Number add(KernelBuilder& k, const Number& a, const Number& b);
[[nodiscard]] Number subtract(KernelBuilder& k, const Number& a, const Number& b);
[[nodiscard]] Number least(KernelBuilder& k, const Number& a, const Number& b);
[[nodiscard]] Number times(KernelBuilder& k, const Number& a, std::uint32_t factor);
/// floor(n / divisor) for n up to `most`; assemblers make a long sequence of a division.
[[nodiscard]] Value<u32> quotient(KernelBuilder& k, const Value<u32>& n, std::uint64_t most,
                                  std::uint64_t divisor);
/// What that quotient leaves.
[[nodiscard]] Value<u32> remainder(KernelBuilder& k, const Value<u32>& n,
                                   const Value<u32>& quotient, std::uint32_t divisor);
/// `p` moved by n times `bytes`, exact in 64 bits.
[[nodiscard]] Ptr<b8> moved(KernelBuilder& k, const Ptr<b8>& p, const Number& n,
                            std::uint64_t bytes);

/// Where the variable points now, without a copy: good until it is moved.
template <class S>
[[nodiscard]] Ptr<b8, S> here(const Var<Ptr<b8, S>>& p) {
  return Ptr<b8, S>(detail::PointerData{p.core(), p.reg(), 0, 0});
}
/// `body` n times.
void repeat(KernelBuilder& k, const Number& n, const std::function<void()>& body);
/// `body` unless n is 0.
void if_any(KernelBuilder& k, const Number& n, const std::function<void()>& body);
/// Asks the L2 for the line at p.
void prefetch(KernelBuilder& k, const Ptr<b8>& p);

class BulkRing;

/// Everything that stays the same from the kernel's first statement to its last. An operand that
/// the problem does not have is not there.
struct Kit {
  Kit(KernelBuilder& builder, const GemvPlan& of) : k(builder), plan(of) {}

  KernelBuilder& k;
  const GemvPlan& plan;
  std::optional<Ptr<b8>> y, a, x, bias, residual, workspace;
  std::optional<Value<f32>> alpha, beta;
  std::optional<SharedArray<f32>> stack;
  std::optional<SharedArray<f32>> ranks;  ///< of a cluster's first block: the others' sums
  std::optional<SharedArray<u32>> verdict;
  std::optional<Ptr<b8, Shared>> ring;  ///< the thread's first load in the ring of path Async

  BulkRing* bulk = nullptr;  ///< the ring of path Bulk

  // Where the thread stands. `across` counts the lanes of a strip's warps side by side.
  std::optional<Value<u32>> thread, lane, across;
  std::optional<Pred> odd;           ///< whether the lane is, for lanes that swap
  std::optional<Value<u32>> warp_k;  ///< where warps are stacked along k
  std::optional<Value<u32>> row;     ///< layout R: its warp's first row within a strip, unless 0
  std::optional<Value<u32>> out;     ///< its first output within a strip
  std::optional<Ptr<b8>> weights;    ///< its weights of the matrix' first strip and step
  std::optional<Ptr<b8>> factors;    ///< its elements of x of the first step
  std::uint32_t rings = 0;           ///< that were emitted, for their labels
  std::uint32_t v = 1;               ///< weights of a load
  std::uint64_t pitch = 0;           ///< bytes from one row of the matrix to the next

  [[nodiscard]] const GemvProblem& problem() const noexcept { return plan.problem; }
  [[nodiscard]] bool rows_of_k() const noexcept { return problem().layout == GemvLayout::R; }
  /// Elements along k of a warp in one step.
  [[nodiscard]] std::uint32_t piece() const noexcept { return plan.step_elements() / plan.warps_k; }
  [[nodiscard]] Load weight_load() const;
  [[nodiscard]] Load factor_load() const;
};

/// Steps of one strip that a block computes together.
struct Segment {
  Number strip, first, count;
  Number item;  ///< the first item: see partition.hpp
};
using Sums = std::vector<Var<f32>>;

// segments.cpp
/// The block's segments: what `body` emits is executed once for each of them, in order.
void for_each_segment(Kit& kit, const std::function<void(const Segment&)>& body);
/// Whether there may be more than one, that is, whether `body` is in a loop.
[[nodiscard]] bool may_loop(const GemvPlan& plan);
/// The first item of a block, or with `next` 1 that of the block behind it.
[[nodiscard]] Value<u32> first_item_of(Kit& kit, const Value<u32>& block, std::uint32_t next);
/// The first of them, for what is asked for before the others.
[[nodiscard]] Segment first_segment(Kit& kit);
/// Blocks (or chunks) that a strip's sums come from, and the first one's place in the workspace.
struct Parts {
  Number count, first_slot, slot;
};
[[nodiscard]] Parts parts_of(Kit& kit, const Segment& segment);

/// Steps of the segment that the warp has in full, all of one kind.
[[nodiscard]] Number full_steps(Kit& kit, const Segment& segment);
/// Emits `body` for the warp whose piece of the last step is neither full nor empty, if the
/// segment has that step. `body` gets the elements of that piece.
void if_tail(Kit& kit, const Segment& segment, const std::function<void(std::uint32_t)>& body);

/// The same for everything that does not come by the ring of path Bulk: warps with full pieces of
/// that step, too.
void if_rest(Kit& kit, const Segment& segment, const std::function<void(std::uint32_t)>& body);

// layout_t.cpp, layout_r.cpp
void place_t(Kit& kit);
void place_r(Kit& kit);
/// Asks for the weights of the segment's first step.
void request_t(Kit& kit, const Segment& segment);
void request_r(Kit& kit, const Segment& segment);
/// Adds the segment's products to `sums`: `v` of layout T, `rows` of layout R.
void accumulate_t(Kit& kit, const Segment& segment, Sums& sums);
void accumulate_r(Kit& kit, const Segment& segment, Sums& sums);

/// Outputs of one thread that are neighbours, as sums that go through one store.
struct Piece {
  Value<u32> out;                      ///< the first, within the strip
  std::uint32_t begin = 0, count = 1;  ///< in `sums`
};
/// What a thread is left with once the lanes of each warp have put their sums together.
struct Outputs {
  Sums sums;
  std::vector<Piece> pieces;
  std::optional<Pred> owner;  ///< whether it has outputs at all; all do where there is none
};

// reduce.cpp
[[nodiscard]] Outputs finish_warp(Kit& kit, Sums sums);
/// Adds the stacked warps' sums, in their order, into those of the first.
void add_stack(Kit& kit, Outputs& outputs);
/// Tells the cluster that the block runs; once, before `add_cluster`.
void begin_cluster(Kit& kit);
/// Adds the sums of the cluster's blocks, in the order of their ranks, into those of the first, and
/// says whether the block is that.
[[nodiscard]] Pred add_cluster(Kit& kit, Outputs& outputs);
/// Hands the segment's sums in. `then` is emitted for the block that has the whole strip's sums:
/// at once, or as the last to arrive.
void add_parts(Kit& kit, const Segment& segment, Outputs& outputs,
               const std::function<void()>& then);

// epilogue.cpp
void store_outputs(Kit& kit, const Segment& segment, Outputs& outputs);

}  // namespace ptxgen::inline v0::gemv
