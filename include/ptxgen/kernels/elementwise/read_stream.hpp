// ptxgen/kernels/elementwise/read_stream.hpp - a kernel that only reads memory
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0 {

/// The roofline of read-bound kernels. Reads every byte of a buffer once: 16 bytes per lane,
/// consecutive lanes on consecutive 16 bytes, `kUnroll` loads of a thread in flight, the grid from
/// the start of the buffer to its end.
///
/// To keep the reads and to check them, each warp adds up its 32-bit words modulo 2^32. Integers,
/// because their sum does not depend on the order.
///
/// Entry `read_stream(in, sums, groups)`: `in` has `groups` times 16 bytes, aligned to 16; `sums`
/// one u32 for each warp of the grid.
struct ReadStream {
  std::uint64_t groups = 1u << 16;  ///< of 16 bytes, for geometry and cost; the kernel takes any
  std::uint32_t threads = 512;      ///< of a block: a multiple of 32, at most 1024
  std::uint32_t blocks = 1;         ///< of the grid; two for each SM keep a big GPU busy

  static constexpr std::string_view kName = "read_stream";
  static constexpr std::uint32_t kMaxThreads = 1024;
  static constexpr std::uint32_t kUnroll = 8;
  using KernelType = Kernel<Ptr<b8>, Ptr<u32>, u64>;

  [[nodiscard]] KernelType build(const ptx::Target& target) const;
  /// Throws `Error` (Stage::Launch): "bad-block", "empty-grid".
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] std::uint32_t warps() const noexcept { return blocks * (threads / 32); }
  /// Reads 16 bytes for each group and writes 4 for each warp.
  [[nodiscard]] KernelCost cost() const noexcept;
  /// The sum of all words, modulo 2^32, which equals the sum over all warps.
  [[nodiscard]] static std::uint32_t reference(std::span<const std::uint32_t> words) noexcept;
};

}  // namespace ptxgen::inline v0
