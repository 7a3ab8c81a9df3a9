// src/kernels/gemv/model.hpp - what the planner knows of a GEMV plan
#pragma once

#include <cstdint>
#include <vector>

#include "ptxgen/kernels/gemv/planner.hpp"

namespace ptxgen::inline v0::gemv {

/// What a launch asks of global memory, exactly: what the emulator's counters say of a launch in
/// which every buffer begins at a sector, or as many bytes behind one as its alignment says where
/// that is less than 16.
struct Traffic {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
};
/// Of the weights alone. All plans of equal `load_bytes` have them in common, but for bulk copies.
struct Weights {
  std::uint64_t requests = 0;  ///< copies, where they come in bulk
  std::uint64_t sectors = 0;
  std::uint64_t bytes = 0;
  /// Distinct 32-byte sectors of the matrix, as bytes: what DRAM moves.
  std::uint64_t matrix_bytes = 0;
};
[[nodiscard]] Weights weights(const GemvPlan& plan) noexcept;

/// How the work falls on blocks and on multiprocessors; block b runs on multiprocessor b mod `sms`.
struct Division {
  std::uint64_t reductions = 0;     ///< strips whose partial sums go through the workspace
  std::uint64_t parts = 0;          ///< those partial sums, strips times contributors
  std::uint64_t pieces = 0;         ///< pairs of a block and a strip that it works on
  std::uint64_t busiest_bytes = 0;  ///< weights of the multiprocessor that has most
};
/// O(blocks).
[[nodiscard]] Division divide(const GemvPlan& plan, std::uint32_t sms);
/// About the same, in O(1): for a first choice among many plans.
[[nodiscard]] Division divide_roughly(const GemvPlan& plan, std::uint32_t sms);

[[nodiscard]] Traffic traffic(const GemvPlan& plan, const Weights& weights,
                              const Division& division) noexcept;

/// Registers of a thread that the assembler needs at most, without spilling (registers.cpp).
[[nodiscard]] std::uint32_t registers(const GemvPlan& plan, std::uint16_t sm) noexcept;

/// What the time of a launch is made of, in microseconds.
struct Times {
  double memory = 0;     ///< the bytes at the rate that a reader gets
  double stream = 0;     ///< the same with the bytes in flight and instructions that there are
  double busy = 0;       ///< until the busiest multiprocessor is done
  double reduction = 0;  ///< partial sums behind that
};
struct Forecast {
  GemvPrediction prediction;
  Times times;
};
[[nodiscard]] Forecast forecast(const GemvPlan& plan, const ptx::Gpu& gpu, const Weights& weights,
                                const Division& division);
/// Bytes in flight on each multiprocessor with which the latency alone would allow the rate of a
/// reader.
[[nodiscard]] double bytes_in_flight_wanted(const ptx::Gpu& gpu) noexcept;

/// Whether `check` allows it.
[[nodiscard]] bool can_be(const GemvPlan& plan, const ptx::Target& target);
/// Plans worth looking at, in a fixed order; at least one of them `can_be`.
[[nodiscard]] std::vector<GemvPlan> candidates(const GemvProblem& problem, const ptx::Gpu& gpu);

}  // namespace ptxgen::inline v0::gemv
