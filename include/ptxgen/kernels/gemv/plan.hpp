// ptxgen/kernels/gemv/plan.hpp - a GEMV, and one way to compute it
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ptxgen/kernels/element_type.hpp"
#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0 {

/// Memory layout of the matrix.
enum class GemvLayout : std::uint8_t {
  T,  ///< `A[k x n]` row-major: y[j] = sum over i of A[i * lda + j] * x[i]
  R,  ///< `W[n x k]` row-major, one row for each output: y[j] = sum over i of W[j * lda + i] * x[i]
};
[[nodiscard]] std::string_view to_string(GemvLayout layout) noexcept;  ///< "T", "R"

struct GemvOperands;  // ptxgen/kernels/gemv/operands.hpp

/// `y = alpha * sum + beta * y + bias + residual`, each term optional. Sums are f32 for all types.
/// Each step is rounded once, in this order: `t = alpha * sum; t = fma(beta, y, t); t = t + bias; t
/// = t + residual; y = round(t)`.
struct GemvProblem {
  using Operands = GemvOperands;

  std::uint32_t k = 4096;  ///< elements of x; 0 gives sums of 0
  std::uint32_t n = 4096;  ///< elements of y, at least 1
  GemvLayout layout = GemvLayout::T;
  /// f32, f16 or bf16; with layout R also q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k, where k
  /// and lda are multiples of a block's values.
  ElementType weights = ElementType::f32;
  /// f32, or the weights' type. With weights in blocks f32, f16, bf16 (the exact path: each 32
  /// elements become integers of 22 bits and a sign, of one scale; if one of them is infinite or
  /// NaN, all are NaN) or q8_1 (the fast path).
  ElementType x = ElementType::f32;
  /// Of y, bias and residual: f32, or the weights' type; with weights in blocks f32, f16 or bf16.
  ElementType y = ElementType::f32;
  /// Elements from one row of the matrix to the next; 0: the row length (T: n, R: k).
  std::uint64_t lda = 0;
  /// Rows are repacked, as `repack_row` writes them: q4_0, q4_1, q5_0, q5_1, q8_0 or q6_k with
  /// layout R and tight rows, aligned to 16 bytes. Lanes then load integers 16 bytes at a time, and
  /// each sector once.
  bool repacked = false;
  /// Alignment in bytes of the first weight, of x and of y (and bias and residual): a power of two,
  /// at least an element. Values above 16 count as 16.
  std::uint32_t a_alignment = 16;
  std::uint32_t x_alignment = 16;
  std::uint32_t y_alignment = 16;
  bool scaled = false;    ///< alpha and beta; otherwise 1 and 0, and y is not read
  bool bias = false;      ///< n elements
  bool residual = false;  ///< n elements; may be y itself

  [[nodiscard]] std::uint64_t leading_dimension() const noexcept {
    return lda != 0 ? lda : layout == GemvLayout::T ? n : k;
  }
  /// Elements from the first weight to after the last.
  [[nodiscard]] std::uint64_t matrix_elements() const noexcept {
    const std::uint64_t rows = layout == GemvLayout::T ? k : n;
    const std::uint64_t row = layout == GemvLayout::T ? n : k;
    return rows == 0 || row == 0 ? 0 : (rows - 1) * leading_dimension() + row;
  }
  /// From a row of the matrix to the next, bytes.
  [[nodiscard]] std::uint64_t row_bytes() const noexcept;
  /// From the first byte of the matrix to the end of its last row.
  [[nodiscard]] std::uint64_t matrix_bytes() const noexcept;
  friend bool operator==(const GemvProblem&, const GemvProblem&) = default;
};

/// How weights reach the registers.
enum class GemvPath : std::uint8_t {
  Direct,  ///< loads of `load_bytes` by each lane, `unroll` of them on their way
  Async,   ///< `cp.async` into a ring in shared memory (sm_80 and newer)
  Bulk,    ///< `cp.async.bulk` by one thread into a ring with mbarriers (sm_90 and newer)
};
[[nodiscard]] std::string_view to_string(GemvPath path) noexcept;  ///< "direct", "async", "bulk"

/// One way to compute a `GemvProblem`. Plain data; equal plans give equal code and equal bits.
///
/// *Strips.* The outputs are divided into strips of `warps_out` warps. A warp computes
/// `warp_outputs()` outputs: with layout T a lane has `load_bytes / bytes(weights)` consecutive
/// columns and the warp 32 times that; with layout R a warp has `rows` rows, along which its lanes
/// read consecutive elements.
///
/// *Steps.* The sums are divided into steps along k: the loads that a block has in flight at a
/// time. `warps_k` warps are stacked along k; each has `unroll` rows of a step with layout T,
/// `unroll` loads of 32 lanes in each of its rows with layout R.
///
/// *Partition.* Strips times steps are units, numbered strip by strip. Block b of `blocks` has the
/// units [floor(b * units / blocks), floor((b + 1) * units / blocks)): equal bytes for all. `blocks
/// == strips()` is no split, `s * strips()` a split of k by s, a multiple of the SMs a persistent
/// kernel; in general several blocks contribute to a strip. With `chunk_steps` the units are chunks
/// instead of steps: one block processes a whole chunk.
///
/// *Reduction.* The lanes of a warp reduce by a butterfly (layout R), stacked warps through shared
/// memory in the order of the warps, and the blocks of a strip through a workspace: the block that
/// arrives last (a ticket per strip) adds all partial sums in the order of k. No float atomics: the
/// same plan gives the same bits in every run.
struct GemvPlan {
  GemvProblem problem;
  GemvPath path = GemvPath::Direct;
  std::uint32_t load_bytes = 16;  ///< of a lane's load: 16, 8, 4 or 2, as the alignment allows
  std::uint32_t warps_out = 4;
  std::uint32_t warps_k = 1;
  /// Layout R: rows of a warp, 1 to 8; of weights in blocks, where a step of 16 lanes suits k
  /// better, rows of a half warp. Layout T: 1.
  std::uint32_t rows = 1;
  std::uint32_t unroll = 8;
  std::uint32_t blocks = 1;  ///< of the grid, at most one per unit (or chunk)
  /// Steps per partial sum. Partial sums are added in the order of k, so the result's bits do not
  /// depend on `blocks`. 0: one partial sum per contributing block.
  std::uint32_t chunk_steps = 0;
  /// Blocks of a cluster, adjacent along k, which add their sums through distributed shared memory
  /// in the order of their rank (sm_90 and newer); 1: none. Divides the blocks of a strip.
  std::uint32_t cluster = 1;
  std::uint32_t stages = 0;  ///< Async, Bulk: steps in the ring, at least 2
  /// Programmatic dependent launch (sm_90 and newer): weights are loaded before
  /// `griddepcontrol.wait`, everything else after it.
  bool programmatic = false;
  bool streaming = true;            ///< weights are not kept in L1
  std::uint32_t blocks_per_sm = 1;  ///< resident blocks per SM; bounds the registers
  /// Rows of x that are multiplied with a weight when it is decoded, 1 to 8; more than one only in
  /// `BatchedGemv`.
  std::uint32_t batch = 1;

  // Derived figures, in 64 bits and without overflow for every valid plan.
  [[nodiscard]] std::uint32_t threads() const noexcept { return 32 * warps_out * warps_k; }
  [[nodiscard]] std::uint32_t warp_outputs() const noexcept;
  [[nodiscard]] std::uint32_t strip_outputs() const noexcept;  ///< warps_out * warp_outputs()
  [[nodiscard]] std::uint32_t step_elements() const noexcept;  ///< along k, all stacked warps
  [[nodiscard]] std::uint64_t strips() const noexcept;
  [[nodiscard]] std::uint64_t steps() const noexcept;  ///< of a strip; at least 1
  [[nodiscard]] std::uint64_t units() const noexcept { return strips() * steps(); }
  /// The first unit of block b; `first_unit(blocks)` is `units()`.
  [[nodiscard]] std::uint64_t first_unit(std::uint64_t block) const noexcept;
  /// Whether several blocks contribute to a strip.
  [[nodiscard]] bool is_split() const noexcept;
  /// Maximum of partial sums per output (contributing blocks, or chunks).
  [[nodiscard]] std::uint64_t max_parts() const noexcept;
  /// Static and dynamic shared memory of a block, bytes.
  [[nodiscard]] std::uint64_t shared_bytes() const noexcept;
  /// Device memory for partial sums and tickets, bytes, aligned to 16; 0 if nothing is split. The
  /// tickets, its first `ticket_bytes()`, must be 0 before the first launch; every launch leaves
  /// them 0. Concurrent launches need one workspace each.
  [[nodiscard]] std::uint64_t workspace_bytes() const noexcept;
  [[nodiscard]] std::uint64_t ticket_bytes() const noexcept;
  /// Maximum bytes of weights that a block has in flight.
  [[nodiscard]] std::uint64_t bytes_in_flight() const noexcept;
  /// Roundings on the longest path from a product to an output, for `gemv_error_bound`.
  [[nodiscard]] std::uint64_t roundings() const noexcept;
  friend bool operator==(const GemvPlan&, const GemvPlan&) = default;
};

/// The widest load, in bytes, that every row of the matrix allows: 16, 8, 4 or 2.
[[nodiscard]] std::uint32_t widest_load(const GemvProblem& problem) noexcept;

/// Throws `Error` (Stage::Build, "bad-problem") naming the member, its value and what it may be.
void check(const GemvProblem& problem);
/// The same, and "bad-plan" for a plan that is invalid or that the target does not support.
void check(const GemvPlan& plan, const ptx::Target& target);

/// "T f32 4096x4096", then what differs from the default: "R bf16 4096x11008 lda 11264 bias".
[[nodiscard]] std::string to_text(const GemvProblem& problem);
/// "direct 16 B, 4x1 warps, 8 in flight, 1056 blocks (33 per strip)".
[[nodiscard]] std::string to_text(const GemvPlan& plan);

}  // namespace ptxgen::inline v0
