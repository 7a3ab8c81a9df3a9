// ptxgen/kernels/model/predict.hpp - predicted time of a launch
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ptxgen/kernels/description.hpp"
#include "ptxgen/kernels/model/errors.hpp"
#include "ptxgen/kernels/model/rates.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0 {

/// What a launch reads and writes, and with how much of it on the way.
struct LaunchWork {
  std::uint64_t bytes_read = 0;  ///< of device memory, each byte once
  std::uint64_t bytes_written = 0;
  std::uint64_t blocks = 1;
  std::uint32_t threads = 256;      ///< of a block
  std::uint32_t blocks_per_sm = 1;  ///< resident at a time, at least 1
  double bytes_in_flight = 16;      ///< that a thread loads before it waits for them, above 0
};

/// What is between the kernel and the one ahead of it.
enum class Boundary : std::uint8_t {
  Stream,  ///< launched one by one
  Graph,   ///< nodes of a graph, one after another
  /// The same with programmatic dependent launch, whose saving was never measured alone.
  Programmatic,
};
[[nodiscard]] std::string_view to_string(Boundary boundary) noexcept;  ///< "stream", ...
/// What no published timing shows of it, a sentence; empty: nothing.
[[nodiscard]] std::string_view unproved(Boundary boundary) noexcept;

struct PredictOptions {
  Boundary boundary = Boundary::Graph;
  /// The launch ahead of it used the same data, so what fits the L2 is there.
  bool warm = false;
};

/// Times of a launch, in microseconds. Each is what its resource alone would take.
struct LaunchTerms {
  double launch = 0;   ///< boundary, with the start and the end of a block
  double blocks = 0;   ///< the starts of all blocks, one after another
  double latency = 0;  ///< a resident block's loads one after another, without load
  double dram = 0;     ///< the bytes that DRAM moves, at the rate of full load
  double l2 = 0;       ///< the bytes that stay in the L2
};

struct LaunchPrediction {
  double us = 0;
  LaunchTerms terms;
  std::string_view bound_by;  ///< "launch", "blocks", "latency", "dram", "l2": the largest term
  Regime regime = Regime::Reads;
  ErrorBand error;
};

[[nodiscard]] LaunchPrediction predict(const LaunchWork& work, const GpuRates& rates,
                                       const ptx::Gpu& gpu, const PredictOptions& options = {});
[[nodiscard]] LaunchPrediction predict(const LaunchWork& work, const ptx::Gpu& gpu,
                                       const PredictOptions& options = {});

/// The work of a described kernel with these parameter values: its minimum traffic, its geometry,
/// resident blocks by threads, shared memory and the registers that are alive at a time in its PTX,
/// and the loads that its PTX issues before it waits. Throws what the kernel throws for the values.
[[nodiscard]] LaunchWork launch_work(const KernelDescription& kernel,
                                     std::span<const std::uint64_t> values, const ptx::Gpu& gpu);

}  // namespace ptxgen::inline v0
