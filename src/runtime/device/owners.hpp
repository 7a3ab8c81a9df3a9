// src/runtime/device/owners.hpp - what the runtime's handles hide
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "runtime/device/core.hpp"
#include "runtime/launch/workspace.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/runtime/device/stream.hpp"

namespace ptxgen::inline v0 {

using SharedCore = std::shared_ptr<const ContextCore>;

/// Device memory. The context is current. Throws `Error` (Stage::Device): "out-of-memory" with the
/// free and total bytes, "driver-call". `what` ends the first words of the message, or is empty.
[[nodiscard]] driver::CUdeviceptr allocate(const ContextCore& core, std::uint64_t bytes,
                                           std::string_view what = {});

/// An object of the driver that is let go of by the destructor.
template <class Handle, Release kKind>
struct Owned {
  explicit Owned(SharedCore of) noexcept : core(std::move(of)) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { core->let_go(kKind, handle); }

  const SharedCore core;
  Handle handle{};
};

struct Context::Shared {
  SharedCore core;
};
struct Stream::Owner {
  explicit Owner(SharedCore of) noexcept : core(std::move(of)) {}
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  /// Ends a capture that is still going on.
  ~Owner();
  const SharedCore core;
  driver::CUstream handle = nullptr;
  bool borrowed = false;
  StreamWorkspace workspace;  ///< not of a borrowed one: the host's stream outlives this object
};
struct StreamAccess {
  [[nodiscard]] static StreamWorkspace& workspace(const Stream& stream) noexcept {
    return stream.owner_->workspace;
  }
};
struct Event::Owner : Owned<driver::CUevent, Release::Event> {
  using Owned::Owned;
};
struct Graph::Owner {
  explicit Owner(SharedCore of) noexcept : executable(std::move(of)) {}
  std::vector<std::shared_ptr<const void>> kept;  ///< modules; unloaded after the graph is gone
  Owned<driver::CUgraphExec, Release::GraphExec> executable;
  std::size_t nodes = 0;
};
struct detail::DeviceMemory::Owner : Owned<driver::CUdeviceptr, Release::Memory> {
  using Owned::Owned;
};

}  // namespace ptxgen::inline v0
