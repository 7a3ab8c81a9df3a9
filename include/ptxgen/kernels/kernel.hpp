// ptxgen/kernels/kernel.hpp - how a kernel is launched, and what it costs
#pragma once

#include <cstdint>

namespace ptxgen::inline v0 {

struct Dim3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
  friend bool operator==(const Dim3&, const Dim3&) = default;
};

/// How a kernel is launched.
struct LaunchGeometry {
  Dim3 grid;
  Dim3 block;
  std::uint32_t dynamic_shared_bytes = 0;
  Dim3 cluster{1, 1, 1};  ///< blocks of a cluster, sm_90 and later; divides the grid
  /// Programmatic dependent launch: the kernel may start while the previous one in the stream still
  /// runs, and waits for it at `griddepcontrol.wait`, which it must have.
  bool programmatic = false;
  /// All blocks are resident at the same time, as grid-wide barriers require.
  bool cooperative = false;
  friend bool operator==(const LaunchGeometry&, const LaunchGeometry&) = default;
};

/// Minimum traffic and work of one launch: each input byte once, each output byte once. Bytes of
/// device memory; one fused multiply-add counts as two operations.
struct KernelCost {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t flops = 0;
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_read + bytes_written; }
};

/// Device memory that a launch needs for intermediate results, in bytes, multiples of 16: tickets,
/// which are 0 between launches, followed by uninitialised partial results.
struct WorkspaceNeed {
  std::uint64_t tickets = 0;
  std::uint64_t parts = 0;
  [[nodiscard]] bool none() const noexcept { return tickets == 0 && parts == 0; }
};

}  // namespace ptxgen::inline v0
