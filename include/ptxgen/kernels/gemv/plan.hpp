// ptxgen/kernels/gemv/plan.hpp - a GEMV, and one way to compute it
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0 {

/// How the matrix lies in memory.
enum class GemvLayout : std::uint8_t {
  T,  ///< `A[k x n]` row-major: y[j] = sum over i of A[i * lda + j] * x[i]
  R,  ///< `W[n x k]` row-major, one row for each output: y[j] = sum over i of W[j * lda + i] * x[i]
};
/// What an element is.
enum class GemvType : std::uint8_t { f32, f16, bf16 };

[[nodiscard]] std::string_view to_string(GemvLayout layout) noexcept;  ///< "T", "R"
[[nodiscard]] std::string_view to_string(GemvType type) noexcept;      ///< "f32", "f16", "bf16"
[[nodiscard]] std::uint32_t bytes(GemvType type) noexcept;

/// `y = alpha * sum + beta * y + bias + residual`, as far as these are asked for: what is to be
/// computed. Sums are f32, whatever the types. In this order, each step rounded once:
/// `t = alpha * sum; t = fma(beta, y, t); t = t + bias; t = t + residual; y = round(t)`.
struct GemvProblem {
  std::uint32_t k = 4096;  ///< elements of x; 0 gives sums of 0
  std::uint32_t n = 4096;  ///< elements of y, at least 1
  GemvLayout layout = GemvLayout::T;
  GemvType weights = GemvType::f32;
  GemvType x = GemvType::f32;  ///< f32, or as the weights
  GemvType y = GemvType::f32;  ///< of y, bias and residual: f32, or as the weights
  /// Elements from one row of the matrix to the next; 0: as long as a row (T: n, R: k).
  std::uint64_t lda = 0;
  /// Of the address of the first weight, of x and of y (bias and residual too), in bytes: a power
  /// of two, at least an element. More than 16 says nothing more.
  std::uint32_t a_alignment = 16;
  std::uint32_t x_alignment = 16;
  std::uint32_t y_alignment = 16;
  bool scaled = false;    ///< alpha and beta; otherwise 1 and 0, and y is not read
  bool bias = false;      ///< n elements
  bool residual = false;  ///< n elements; may be y itself

  [[nodiscard]] std::uint64_t leading_dimension() const noexcept {
    return lda != 0 ? lda : layout == GemvLayout::T ? n : k;
  }
  /// Elements from the first weight to behind the last.
  [[nodiscard]] std::uint64_t matrix_elements() const noexcept;
  friend bool operator==(const GemvProblem&, const GemvProblem&) = default;
};

/// How weights come to the registers.
enum class GemvPath : std::uint8_t {
  Direct,  ///< loads of `load_bytes` by each lane, `unroll` of them on their way
  Async,   ///< `cp.async` into a ring in shared memory (sm_80 and newer)
  Bulk,    ///< `cp.async.bulk` by one thread into a ring with mbarriers (sm_90 and newer)
};
[[nodiscard]] std::string_view to_string(GemvPath path) noexcept;  ///< "direct", "async", "bulk"

/// One way to compute a `GemvProblem`. Plain data; equal plans give equal code and equal bits.
///
/// *Strips.* The outputs are cut into strips, each the work of a block's warps side by side. A warp
/// works on `warp_outputs()` of them: with layout T a lane owns `load_bytes / bytes(weights)`
/// neighbouring columns and the warp 32 times that; with layout R a warp owns `rows` rows, along
/// which its lanes stand side by side. `warps_out` warps stand side by side in a strip.
///
/// *Steps.* The sums are cut into steps along k: what the block's warps have on their way at a
/// time. `warps_k` warps are stacked along k; each has with layout T `unroll` rows of a step, with
/// layout R `unroll` loads of 32 lanes in each of its rows.
///
/// *Partition.* Strips times steps are units in one line, strip by strip. Block b of `blocks` has
/// the units [floor(b * units / blocks), floor((b + 1) * units / blocks)): equal bytes for all.
/// `blocks == strips()` is no split at all, `s * strips()` a split of k into s, a multiple of the
/// SMs a persistent kernel; in general a strip has several contributors. With `chunk_steps` the
/// same is done with chunks instead of steps: a chunk is the work of one block.
///
/// *Reduction.* The lanes of a warp by a butterfly (layout R), the stacked warps through shared
/// memory in the order of the warps, the contributors of a strip through a workspace: the one that
/// arrives last (a ticket per strip) adds all partial sums in the order of k. No float atomics: the
/// same plan gives the same bits in every run.
struct GemvPlan {
  GemvProblem problem;
  GemvPath path = GemvPath::Direct;
  std::uint32_t load_bytes = 16;  ///< of a lane's load: 16, 8, 4 or 2; what the alignment allows
  std::uint32_t warps_out = 4;
  std::uint32_t warps_k = 1;
  std::uint32_t rows = 1;  ///< layout R: rows of a warp, 1 to 8; layout T: 1
  std::uint32_t unroll = 8;
  std::uint32_t blocks = 1;  ///< of the grid, at most one for each unit (or chunk)
  /// Not 0: partial sums are kept for each so many steps and added in the order of k, however the
  /// blocks fall: the bits of the result do not depend on `blocks`. 0: one for each contributor.
  std::uint32_t chunk_steps = 0;
  /// Blocks of a cluster, neighbours along k, which add their sums through distributed shared
  /// memory in the order of their rank (sm_90 and newer); 1: none. Divides the blocks of a strip.
  std::uint32_t cluster = 1;
  std::uint32_t stages = 0;  ///< Async, Bulk: steps in the ring, at least 2
  /// Programmatic dependent launch (sm_90 and newer): weights are asked for before
  /// `griddepcontrol.wait`, everything else after it.
  bool programmatic = false;
  bool streaming = true;            ///< weights do not stay in L1
  std::uint32_t blocks_per_sm = 1;  ///< that shall fit on an SM: bounds the registers

  // What follows from it. All of it in 64 bits and without overflow for every valid plan.
  [[nodiscard]] std::uint32_t threads() const noexcept { return 32 * warps_out * warps_k; }
  [[nodiscard]] std::uint32_t warp_outputs() const noexcept;
  [[nodiscard]] std::uint32_t strip_outputs() const noexcept;  ///< warps_out * warp_outputs()
  [[nodiscard]] std::uint32_t step_elements() const noexcept;  ///< along k, all stacked warps
  [[nodiscard]] std::uint64_t strips() const noexcept;
  [[nodiscard]] std::uint64_t steps() const noexcept;  ///< of a strip; at least 1
  [[nodiscard]] std::uint64_t units() const noexcept { return strips() * steps(); }
  /// The first unit of block b; `first_unit(blocks)` is `units()`.
  [[nodiscard]] std::uint64_t first_unit(std::uint64_t block) const noexcept;
  /// Whether some strip is the work of several blocks.
  [[nodiscard]] bool is_split() const noexcept;
  /// The most partial sums that an output is made of (contributors, or chunks).
  [[nodiscard]] std::uint64_t max_parts() const noexcept;
  /// Static and dynamic shared memory of a block, bytes.
  [[nodiscard]] std::uint64_t shared_bytes() const noexcept;
  /// Device memory for partial sums and tickets, bytes, aligned to 16; 0 if nothing is split. The
  /// tickets, the first `ticket_bytes()` of it, must be 0 before the first launch; every launch
  /// leaves them 0. Launches that run at the same time need one each.
  [[nodiscard]] std::uint64_t workspace_bytes() const noexcept;
  [[nodiscard]] std::uint64_t ticket_bytes() const noexcept;
  /// Bytes of weights that a block has asked for and not got, at best.
  [[nodiscard]] std::uint64_t bytes_in_flight() const noexcept;
  /// Roundings on the longest way from a product to an output, for `gemv_error_bound`.
  [[nodiscard]] std::uint64_t roundings() const noexcept;
  friend bool operator==(const GemvPlan&, const GemvPlan&) = default;
};

/// The widest load, in bytes, that every row of the matrix allows: 16, 8, 4 or 2.
[[nodiscard]] std::uint32_t widest_load(const GemvProblem& problem) noexcept;

/// Throws `Error` (Stage::Build, "bad-problem") naming the member, its value and what it may be.
void check(const GemvProblem& problem);
/// The same, and "bad-plan" for what the plan, the target or both together cannot be.
void check(const GemvPlan& plan, const ptx::Target& target);

/// "T f32 4096x4096", with what is unusual behind it: "R bf16 4096x11008 lda 11264 bias".
[[nodiscard]] std::string to_text(const GemvProblem& problem);
/// "direct 16 B, 4x1 warps, 8 in flight, 1056 blocks (33 per strip)".
[[nodiscard]] std::string to_text(const GemvPlan& plan);

}  // namespace ptxgen::inline v0
