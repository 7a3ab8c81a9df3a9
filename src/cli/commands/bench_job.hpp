// src/cli/commands/bench_job.hpp - measures one kernel at one size
#pragma once

#include "cli/commands/bench_rules.hpp"
#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"

namespace ptxgen::cli {

/// A measurement without its sizes.
struct BenchJob {
  BenchOp op = BenchOp::Vadd;
  BenchType type = BenchType::F32;
  std::uint64_t iters = 0;
  std::uint64_t warmup = 0;
  std::uint32_t block = 256;  ///< threads
  std::uint32_t grid = 0;     ///< blocks; 0: as many as have work
  float a = 0;                ///< of fma_rpt
  float b = 0;
  std::uint64_t seed = 0;
  bool validate_all = false;  ///< every element instead of the samples
};

/// Bytes of device memory that the buffers of one measurement take.
[[nodiscard]] std::uint64_t buffer_bytes(const BenchJob& job, std::uint64_t n) noexcept;

/// Warms up, measures `iters` launches between two events, and validates the last result.
/// Device, driver and timing source of the row are the caller's. Throws what the launcher throws.
[[nodiscard]] BenchRow measure(const Launcher& launcher, const Context& context,
                               const BenchJob& job, std::uint64_t n, std::uint64_t k);

}  // namespace ptxgen::cli
