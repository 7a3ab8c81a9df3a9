// ptxgen/kernels/model/rates.hpp - the rates of a GPU that predictions use
#pragma once

#include <span>

#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0 {

/// Rates of a GPU. A figure that was measured on it is taken as it is; any other is the mean over
/// the GPUs nearest to it on which it was: those of its architecture, else those with its kind of
/// memory, else all. Latencies are carried over in clocks, growth as a share of the latency, the
/// L2's rate per SM and clock, all others unchanged.
struct GpuRates {
  double read_gb_per_s = 0;  ///< of DRAM, by a kernel that only reads
  /// Of a block that lives for one load, at low load; what full load adds.
  double latency_ns = 0;
  double growth_ns = 0;
  double start_ns = 0;         ///< start and end of a block: part of that latency, all of a store
  double hit_ns = 0;           ///< of a block that lives for one load from the L2
  double block_ns = 0;         ///< from the start of one block to that of the next, anywhere
  double l2_gb_per_s = 0;      ///< a copy inside the L2, read and written
  double l2_fits_bytes = 0;    ///< data that all stay in the L2 from one launch to the next
  double l2_misses_bytes = 0;  ///< data none of which stay
  double stream_us = 0;        ///< from a kernel that does nearly nothing to the next, in a stream
  double graph_us = 0;         ///< the same in a graph
  bool measured = false;       ///< share, latency and growth, on this GPU
};

[[nodiscard]] GpuRates rates_of(const ptx::Gpu& gpu);
/// The same from the measurements on `known` only.
[[nodiscard]] GpuRates rates_of(const ptx::Gpu& gpu, std::span<const ptx::Gpu> known);

}  // namespace ptxgen::inline v0
