// src/kernels/gemv/emit.hpp - shared parts of the GEMV generator
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "kernels/gemv/block_dot.hpp"
#include "kernels/gemv/partition.hpp"
#include "kernels/parts/staged_copy.hpp"
#include "kernels/parts/words.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/kernels/gemv/plan.hpp"

namespace ptxgen::inline v0::gemv {

/// A number that is known at build time, or computed at run time.
using Number = std::variant<std::uint32_t, Value<u32>>;
[[nodiscard]] inline const std::uint32_t* known(const Number& n) noexcept {
  return std::get_if<std::uint32_t>(&n);
}
[[nodiscard]] Value<u32> value(KernelBuilder& k, const Number& n);
[[nodiscard]] Number add(KernelBuilder& k, const Number& a, const Number& b);
[[nodiscard]] Number subtract(KernelBuilder& k, const Number& a, const Number& b);
[[nodiscard]] Number min_of(KernelBuilder& k, const Number& a, const Number& b);
[[nodiscard]] Number times(KernelBuilder& k, const Number& a, std::uint32_t factor);
/// floor(n / divisor) for n up to `most`; assemblers make a long sequence of a division.
[[nodiscard]] Value<u32> quotient(KernelBuilder& k, const Value<u32>& n, std::uint64_t max_n,
                                  std::uint64_t divisor);
/// The remainder of that quotient.
[[nodiscard]] Value<u32> remainder(KernelBuilder& k, const Value<u32>& n,
                                   const Value<u32>& quotient, std::uint32_t divisor);
/// `p` moved by n times `bytes`, exact in 64 bits.
[[nodiscard]] Ptr<b8> moved(KernelBuilder& k, const Ptr<b8>& p, const Number& n,
                            std::uint64_t bytes);

/// `body` n times.
void repeat(KernelBuilder& k, const Number& n, const std::function<void()>& body);
/// `body` unless n is 0.
void if_any(KernelBuilder& k, const Number& n, const std::function<void()>& body);
/// Prefetches the line at p into L2.
void prefetch(KernelBuilder& k, const Ptr<b8>& p);

class BulkRing;

/// Values that are constant throughout the kernel. Operands that the problem does not have are
/// empty.
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

  // Weights in blocks: the format, x as integers, the lane's part of a step.
  const BlockFormat* blocks = nullptr;
  std::optional<Ptr<b8, Shared>> staged;
  std::optional<BlockDecoder> decoder;      ///< of rows as stored
  std::optional<RepackedDecoder> repacked;  ///< of repacked rows
  bool has_x = false;                       ///< staged x is that of every segment
  [[nodiscard]] const BlockProducts& products() const noexcept {
    return decoder ? static_cast<const BlockProducts&>(*decoder) : *repacked;
  }
  std::optional<Pred> upper;  ///< where half warps have rows: the second one

  /// Of a batch: rows of x from the first of this pass on, which may be fewer than the batch.
  std::optional<Value<u32>> batch_rows;

  BulkRing* bulk = nullptr;  ///< the ring of path Bulk

  // Position of the thread. `across` counts the lanes of a strip's warps.
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
  /// Bytes from a row of x to the next.
  [[nodiscard]] std::uint64_t x_pitch() const noexcept { return bytes(problem().x, problem().k); }
  /// Emits `body` for row `m` of the batch, if there is one.
  template <class Body>
  void for_batch_row(std::uint32_t m, const Body& body) {
    if (!batch_rows) {
      body();
    } else {
      k.if_(*batch_rows > m, body);
    }
  }
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
/// The first item of a block, or with `next` 1 that of the block after it.
[[nodiscard]] Value<u32> first_item_of(Kit& kit, const Value<u32>& block, std::uint32_t next);
/// The first segment, for loads that are issued before the others.
[[nodiscard]] Segment first_segment(Kit& kit);
/// Blocks (or chunks) that contribute to a strip, and the slot of the first in the workspace.
struct Parts {
  Number count, first_slot, slot;
};
[[nodiscard]] Parts parts_of(Kit& kit, const Segment& segment);

/// Full steps of the warp in the segment.
[[nodiscard]] Number full_steps(Kit& kit, const Segment& segment);
/// Emits `body` for the warp whose piece of the last step is neither full nor empty, if the
/// segment has that step. `body` gets the elements of that piece.
void if_tail(Kit& kit, const Segment& segment, const std::function<void(std::uint32_t)>& body);

/// The same for everything that the ring of path Bulk does not load, including warps with full
/// pieces of that step.
void if_rest(Kit& kit, const Segment& segment, const std::function<void(std::uint32_t)>& body);

/// The stages of path Async for one segment; `weights` are those of its first step.
[[nodiscard]] AsyncStages async_stages(Kit& kit, std::uint64_t step_bytes, Var<Ptr<b8>>& weights);
/// Its loop over a segment's steps.
void run_async(Kit& kit, AsyncStages& stages, const Number& steps,
               const std::function<void()>& body);
/// The step's weights, load by load.
[[nodiscard]] std::vector<Floats> take_weights(Kit& kit, AsyncStages& stages);

/// Emits `body` for warps that have rows, with their number: all rows, or the remaining rows of the
/// last warp.
void for_rows(Kit& kit, const Segment& segment, const std::function<void(std::uint32_t)>& body);

// layout_t.cpp, layout_r.cpp, layout_blocks.cpp
void place_t(Kit& kit);
void place_r(Kit& kit);
void place_blocks(Kit& kit);
/// Prefetches the weights of the segment's first step.
void request_t(Kit& kit, const Segment& segment);
void request_r(Kit& kit, const Segment& segment);
void request_blocks(Kit& kit, const Segment& segment);
/// Adds the segment's products to `sums`: `v` of layout T, `rows` of layout R, for each row of a
/// batch.
void accumulate_t(Kit& kit, const Segment& segment, Sums& sums);
void accumulate_r(Kit& kit, const Segment& segment, Sums& sums);
void accumulate_blocks(Kit& kit, const Segment& segment, Sums& sums);
/// Weights in blocks: brings x of all strips to shared memory, where it stays.
void keep_x(Kit& kit);

/// Consecutive outputs of one thread, which one store writes.
struct Piece {
  Value<u32> out;                      ///< the first, within the strip
  std::uint32_t begin = 0, count = 1;  ///< in `sums`
};
/// The outputs of a thread after the reduction over lanes.
struct Outputs {
  Sums sums;
  std::vector<Piece> pieces;
  std::optional<Pred> owner;  ///< whether it has outputs; empty: all threads have
};

// reduce.cpp
[[nodiscard]] Outputs finish_warp(Kit& kit, Sums sums);
/// Adds the stacked warps' sums, in their order, into those of the first.
void add_stack(Kit& kit, Outputs& outputs);
/// Signals the cluster that the block runs; once, before `add_cluster`.
void begin_cluster(Kit& kit);
/// Adds the sums of the cluster's blocks, in the order of their ranks, to those of the first block.
/// Returns whether this is the first block.
[[nodiscard]] Pred add_cluster(Kit& kit, Outputs& outputs);
/// Contributes the segment's sums. `then` is emitted for the block that has the sums of the full
/// strip: at once, or as the last to arrive.
void add_parts(Kit& kit, const Segment& segment, Outputs& outputs,
               const std::function<void()>& then);

// kernel.cpp
/// The directives of a kernel with this plan, before its parameters.
void begin_kernel(KernelBuilder& k, const GemvPlan& plan);
/// Where the thread is, and its shared memory; after the pointers of the kit are set.
void place(Kit& kit);
/// `count` sums of zero, and a segment's products added to them.
[[nodiscard]] Sums sums_of(Kit& kit, const Segment& segment, std::uint32_t count);
/// The kernel of `BatchedGemv`, whose plan has one block for each strip.
void emit_batched(Kit& kit);

// epilogue.cpp
void store_outputs(Kit& kit, const Segment& segment, Outputs& outputs);

}  // namespace ptxgen::inline v0::gemv
