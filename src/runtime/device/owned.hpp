// src/runtime/device/owned.hpp - RAII owners of driver objects
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "runtime/device/core.hpp"

namespace ptxgen::inline v0 {

using SharedCore = std::shared_ptr<const ContextCore>;

/// Allocates device memory. The context is current. `purpose` is added to the error message, or is
/// empty. Throws `Error` (Stage::Device): "out-of-memory" with the free and total bytes,
/// "driver-call".
[[nodiscard]] driver::CUdeviceptr allocate(const ContextCore& core, std::uint64_t bytes,
                                           std::string_view purpose = {});

/// A driver object that the destructor releases.
template <class Handle, Release kKind>
struct Owned {
  explicit Owned(SharedCore of) noexcept : core(std::move(of)) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { core->release(kKind, handle); }

  const SharedCore core;
  Handle handle{};
};

}  // namespace ptxgen::inline v0
