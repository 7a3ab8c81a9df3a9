// src/kernels/model/law.hpp - the law of memory under load
#pragma once

#include <algorithm>
#include <cmath>

#include "ptxgen/kernels/model/rates.hpp"
#include "ptxgen/ptx/limits.hpp"

/// A load takes longer the busier DRAM is: with u, the share of the full rate that is reached, its
/// latency is L(u) = L0 + s u^2. By Little's law the rate is the bytes in flight divided by L(u),
/// and at most the full rate. Fitted to sweeps over the bytes in flight (docs/predictions.md).
namespace ptxgen::inline v0::model {

/// Loads that wait for one another.
struct Sequence {
  double us = 0;         ///< of all of them without load
  double growth_us = 0;  ///< what full load adds to it
};

/// Time of a sequence during which DRAM is busy for `dram_us` at its full rate: the root t of
/// t = us + growth_us (dram_us / t)^2, at least dram_us.
[[nodiscard]] double under_load(const Sequence& sequence, double dram_us) noexcept;

/// Of DRAM with this share of writes among its bytes: changes between reads and writes cost rate
/// and latency.
struct DramRates {
  double gb_per_s = 0;
  double growth_ns = 0;
};
[[nodiscard]] DramRates mixed(const GpuRates& rates, double written_share) noexcept;

/// Bytes of shared memory that an SM loads or stores in a clock, on every architecture.
inline constexpr double kSharedBytesPerClock = 128;
/// Seconds of that many fused multiply-adds in f32 on one SM.
[[nodiscard]] inline double fma_seconds(const ptx::Gpu& gpu, double count) noexcept {
  return count / ptx::limits(gpu.target).fma_per_clock / (gpu.clock_mhz * 1e6);
}
/// Rate of a reader of the L2. Where it was not published, the lower one of a copy.
[[nodiscard]] inline double l2_read_gb_per_s(const ptx::Gpu& gpu, const GpuRates& rates) noexcept {
  return std::max(gpu.measured.l2_read_bytes_per_clock * gpu.clock_mhz * 1e-3, rates.l2_gb_per_s);
}

/// Time of work that needs several resources at a time: close to the largest of `limits` if one
/// dominates, more if some are close.
template <class... Limits>
[[nodiscard]] double together(Limits... limits) noexcept {
  const auto sixth = [](double value) {
    const double cube = value * value * value;
    return cube * cube;
  };
  return std::cbrt(std::sqrt((sixth(limits) + ...)));
}

/// From one kernel to the next with programmatic dependent launch, us. Triton's GEMVs on a GH200
/// are 0.62 and 0.68 us faster with it than as plain nodes of a graph, 1.27 us apart; a streaming
/// GEMV of fp8 on an H100 only 0.15 and 0.21 us (pegainfer issue 569).
inline constexpr double kProgrammaticUs = 0.6;

}  // namespace ptxgen::inline v0::model
