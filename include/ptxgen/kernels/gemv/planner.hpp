// ptxgen/kernels/gemv/planner.hpp - the best GEMV plan for a GPU
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptxgen/kernels/gemv/plan.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0 {

/// What a plan will do on a GPU. Counts are exact, times are a model: see docs/gemv.md.
struct GemvPrediction {
  // Exact: what the emulator counts.
  std::uint64_t bytes_read = 0;       ///< device memory that the kernel asks for, workspace too
  std::uint64_t bytes_written = 0;    ///< the same
  std::uint64_t weight_requests = 0;  ///< loads of weights by warps (copies with Bulk)
  std::uint64_t weight_sectors = 0;   ///< 32-byte sectors of these
  std::uint64_t reductions = 0;       ///< strips whose last contributor adds partial sums
  std::uint64_t parts = 0;            ///< partial sums of strips that go through the workspace
  std::uint64_t workspace_bytes = 0;
  /// Blocks that an SM holds at least: by threads, shared memory and the registers that the plan's
  /// blocks_per_sm (`.minnctapersm`) leaves a thread.
  std::uint32_t blocks_per_sm = 0;
  double waves = 0;  ///< blocks / (blocks_per_sm * SMs); fewer where the assembler takes less
  /// Of a thread: an estimate, for first choices from above and within a quarter or 16 of what
  /// ptxas 13.0 takes.
  std::uint32_t registers = 0;
  double tail_loss = 0;  ///< share of the time in which SMs stand idle since others have more bytes
  double bytes_in_flight_per_sm = 0;
  double bandwidth_gb_per_s = 0;  ///< what these sustain by Little's law, at most the GPU's
  double isolated_us = 0;         ///< one launch, weights cold
  double chained_us = 0;          ///< in a chain of launches over distinct matrices
};

struct GemvCandidate {
  GemvPlan plan;
  GemvPrediction prediction;
  std::string why;  ///< what decided for or against it
};

[[nodiscard]] GemvPrediction predict(const GemvPlan& plan, const ptx::Gpu& gpu);

/// Candidates, the best first: by chained time, then isolated time, then what they take; at least
/// one. Deterministic. Throws what `check` throws.
[[nodiscard]] std::vector<GemvCandidate> rank_gemv_plans(const GemvProblem& problem,
                                                         const ptx::Gpu& gpu);
/// The first of them.
[[nodiscard]] GemvPlan plan_gemv(const GemvProblem& problem, const ptx::Gpu& gpu);

}  // namespace ptxgen::inline v0
