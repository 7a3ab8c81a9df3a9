// src/runtime/launch/host_launch.hpp - a described kernel as a function of the host
#pragma once

#include <memory>
#include <vector>

#include "driver/emulated/host_kernel.hpp"
#include "ptxgen/kernels/host.hpp"

namespace ptxgen::inline v0 {

/// One call with its own copy of the kernel's spec and operands.
class HostLaunch final : public driver::emulated::HostKernel {
 public:
  HostLaunch(const KernelDescription& kernel, const void* spec, const void* operands,
             const HostVectors* vectors);

  [[nodiscard]] std::string_view name() const noexcept override { return kernel_.name; }
  [[nodiscard]] std::span<const Range> memory() const noexcept override { return memory_; }
  void run(std::uint64_t shift) const override {
    run_on_host(kernel_, spec_.get(), operands_.get(), HostRun(shift, vectors_));
  }

 private:
  const KernelDescription& kernel_;
  const ErasedValue spec_;
  const ErasedValue operands_;
  const HostVectors* const vectors_;
  std::vector<Range> memory_;
};

}  // namespace ptxgen::inline v0
