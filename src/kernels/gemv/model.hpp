// src/kernels/gemv/model.hpp - the planner's model of a GEMV plan
#pragma once

#include <cstdint>
#include <vector>

#include "ptxgen/kernels/gemv/planner.hpp"
#include "ptxgen/kernels/model/rates.hpp"

namespace ptxgen::inline v0::gemv {

/// Exact memory traffic of a launch: equal to the emulator's counters if every buffer starts at a
/// sector, or at an offset equal to its alignment if that is less than 16.
struct Traffic {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
};
/// Traffic of the weights. Equal for all plans of equal `load_bytes`, except bulk copies.
struct Weights {
  std::uint64_t requests = 0;  ///< copies on path Bulk
  std::uint64_t sectors = 0;
  std::uint64_t bytes = 0;
  /// Distinct 32-byte sectors of the matrix, as bytes: what DRAM moves.
  std::uint64_t matrix_bytes = 0;
};
[[nodiscard]] Weights weights(const GemvPlan& plan) noexcept;

/// Distribution of the work over blocks and multiprocessors; block b runs on multiprocessor b mod
/// `sms`.
struct Division {
  std::uint64_t reductions = 0;     ///< strips whose partial sums go through the workspace
  std::uint64_t parts = 0;          ///< those partial sums, strips times contributors
  std::uint64_t pieces = 0;         ///< pairs of a block and a strip that it works on
  std::uint64_t busiest_bytes = 0;  ///< maximum of weights per multiprocessor
};
/// O(blocks).
[[nodiscard]] Division divide(const GemvPlan& plan, std::uint32_t sms);
/// About the same, in O(1): for a first choice among many plans.
[[nodiscard]] Division divide_roughly(const GemvPlan& plan, std::uint32_t sms);

[[nodiscard]] Traffic traffic(const GemvPlan& plan, const Weights& weights,
                              const Division& division) noexcept;

/// Upper bound of registers per thread without spilling (registers.cpp).
[[nodiscard]] std::uint32_t registers(const GemvPlan& plan, std::uint16_t sm) noexcept;

struct Forecast {
  GemvPrediction prediction;
  double even_us = 0;    ///< until all weights are read, if all multiprocessors had equal work
  double stream_us = 0;  ///< the same with their work as it is
  /// The chained time if the busiest multiprocessor had no more than its share of DRAM; and if
  /// loads took twice as long besides. How much a plan depends on the law.
  double unshared_us = 0;
  double slow_us = 0;
};
[[nodiscard]] Forecast forecast(const GemvPlan& plan, const ptx::Gpu& gpu, const GpuRates& rates,
                                const Weights& weights, const Division& division);
/// Bytes in flight per multiprocessor that the full read rate needs, an upper bound: with the
/// latency of a block that lives for one load.
[[nodiscard]] double bytes_in_flight_needed(const ptx::Gpu& gpu, const GpuRates& rates) noexcept;

/// Whether `check` allows it.
[[nodiscard]] bool can_be(const GemvPlan& plan, const ptx::Target& target);
/// Candidate plans in a fixed order; at least one of them `can_be`.
[[nodiscard]] std::vector<GemvPlan> candidates(const GemvProblem& problem, const ptx::Gpu& gpu,
                                               const GpuRates& rates);

}  // namespace ptxgen::inline v0::gemv
