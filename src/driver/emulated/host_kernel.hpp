// src/driver/emulated/host_kernel.hpp - functions of the library in the place of kernels
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "ptxgen/driver/table.hpp"

namespace ptxgen::inline v0::driver::emulated {

/// Computes on device memory as a kernel does, without PTX.
///
/// Threads: const members from any thread.
class HostKernel {
 public:
  /// Device memory that it accesses.
  struct Range {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    bool written = false;
  };

  HostKernel() = default;
  HostKernel(const HostKernel&) = delete;
  HostKernel& operator=(const HostKernel&) = delete;
  virtual ~HostKernel() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  [[nodiscard]] virtual std::span<const Range> memory() const noexcept = 0;
  /// A host address is a device address plus `shift`. Called by the context's own thread in the
  /// stream's order, when all ranges are in allocations.
  virtual void run(std::uint64_t shift) const = 0;
};

/// Queues it in a stream of this driver, or adds a host node to the stream's capture. Memory that
/// is not allocated when it runs is a fault of the context, as an access of a kernel.
[[nodiscard]] CUresult launch_host_kernel(CUstream stream,
                                          std::shared_ptr<const HostKernel> kernel) noexcept;

}  // namespace ptxgen::inline v0::driver::emulated
