// ptxgen/kernels/gemv/planner.hpp - the best GEMV plan for a GPU
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptxgen/kernels/gemv/plan.hpp"
#include "ptxgen/kernels/model/errors.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0 {

/// Times of a GEMV, in microseconds. Each is what its resource alone would take.
struct GemvTerms {
  double boundary = 0;   ///< from the kernel ahead of it in a chain
  double blocks = 0;     ///< the starts of all blocks, one after another
  double latency = 0;    ///< steps of the busiest SM one after another, without load
  double dram = 0;       ///< the bytes that DRAM moves, at the rate of full load
  double issue = 0;      ///< instructions of the busiest SM
  double l1 = 0;         ///< bytes through the L1 of the busiest SM
  double reduction = 0;  ///< partial sums after that
};

/// Predicted behaviour of a plan on a GPU. Counts are exact, times come from a model: see
/// docs/gemv.md.
struct GemvPrediction {
  // Exact: equal to the emulator's counters.
  std::uint64_t bytes_read = 0;       ///< device memory that the kernel reads, with the workspace
  std::uint64_t bytes_written = 0;    ///< the same
  std::uint64_t weight_requests = 0;  ///< loads of weights by warps (copies with Bulk)
  std::uint64_t weight_sectors = 0;   ///< 32-byte sectors of these
  std::uint64_t reductions = 0;       ///< strips whose last contributor adds partial sums
  std::uint64_t parts = 0;            ///< partial sums of strips that go through the workspace
  std::uint64_t workspace_bytes = 0;
  /// Minimum of resident blocks per SM, by threads, shared memory and the registers per thread that
  /// the plan's blocks_per_sm (`.minnctapersm`) allows.
  std::uint32_t blocks_per_sm = 0;
  double waves = 0;  ///< blocks / (blocks_per_sm * SMs); fewer if ptxas uses fewer registers
  /// Per thread, estimated: for first choices an upper bound within a quarter or 16 of ptxas 13.0.
  std::uint32_t registers = 0;
  double tail_loss = 0;  ///< share of the time in which SMs are idle because others have more bytes
  double bytes_in_flight_per_sm = 0;
  double bandwidth_gb_per_s = 0;  ///< of the weights, between launch and reduction
  double isolated_us = 0;         ///< launched in a stream, weights cold
  double chained_us = 0;          ///< in a graph of launches over distinct matrices
  GemvTerms terms;                ///< of the chained time
  ErrorBand error;                ///< of such predictions
};

struct GemvCandidate {
  GemvPlan plan;
  GemvPrediction prediction;
  std::string why;  ///< reason for its rank
};

[[nodiscard]] GemvPrediction predict(const GemvPlan& plan, const ptx::Gpu& gpu);

/// Candidates, best first: by chained time to 0.1 %, then by the chained time if loads took twice
/// as long and SMs had equal shares of DRAM, then by resources. Plans that equal shares would make
/// 10 % slower than another come last. At least one. Deterministic. Throws what `check` throws.
[[nodiscard]] std::vector<GemvCandidate> rank_gemv_plans(const GemvProblem& problem,
                                                         const ptx::Gpu& gpu);
/// The first candidate of `rank_gemv_plans`.
[[nodiscard]] GemvPlan plan_gemv(const GemvProblem& problem, const ptx::Gpu& gpu);

}  // namespace ptxgen::inline v0
