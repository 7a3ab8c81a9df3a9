// ptxgen/kernels/gemv/strided.hpp - GEMV with one warp per output column
#pragma once

#include <cstdint>
#include <string_view>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/gemv/gemv.hpp"
#include "ptxgen/kernels/kernel.hpp"

namespace ptxgen::inline v0 {

/// The same product as `GemvCoalesced` with strided accesses: a slow baseline for comparison.
///
/// Access: one warp per column; lane l reads rows l, l + 32, ..., so lanes are n * 4 bytes apart
/// and a warp's load uses 4 bytes of each of 32 sectors. A butterfly of shuffles adds the lanes'
/// sums, lane 0 stores. No shared memory. Entry `gemv_strided(y, a, x, k_dim, n_dim)`.
struct GemvStrided {
  std::uint32_t k = 4096;
  std::uint32_t n = 4096;

  static constexpr std::string_view kName = "gemv_strided";
  static constexpr std::uint32_t kThreads = 32;
  using KernelType = Kernel<Ptr<f32>, Ptr<f32>, Ptr<f32>, u32, u32>;

  [[nodiscard]] KernelType build(const ptx::Target& target) const;
  /// Block 32, grid n. n = 0 throws `Error` (stage launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept;
  /// Roundings on the path to one result: those of a lane, and five of the butterfly.
  [[nodiscard]] std::uint64_t roundings() const noexcept {
    return (std::uint64_t{k} + 31) / 32 + 5;
  }
};

}  // namespace ptxgen::inline v0
