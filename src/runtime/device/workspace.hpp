// src/runtime/device/workspace.hpp - device memory for partial sums of split GEMVs
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/runtime/device/stream.hpp"
#include "runtime/device/core.hpp"

namespace ptxgen::inline v0 {

/// One allocation: zeroed tickets, then partial sums. A plan gets the last tickets, so the partial
/// sums of plans of all sizes follow all tickets and never overwrite one.
class Workspace {
 public:
  /// Returns when the tickets are 0. Safe during captures by any thread. `owner` may be null if
  /// `core` outlives the workspace. Throws `Error` (Stage::Device): "out-of-memory", "driver-call".
  Workspace(const ContextCore& core, std::shared_ptr<const ContextCore> owner, WorkspaceNeed holds);
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  /// Frees it after the work that was queued before.
  ~Workspace();

  [[nodiscard]] bool holds(WorkspaceNeed need) const noexcept {
    return need.tickets <= holds_.tickets && need.parts <= holds_.parts;
  }
  /// For a plan that fits.
  [[nodiscard]] std::uint64_t address(WorkspaceNeed need) const noexcept {
    return base_ + holds_.tickets - need.tickets;
  }
  [[nodiscard]] WorkspaceNeed size() const noexcept { return holds_; }

 private:
  const ContextCore& core_;
  const std::shared_ptr<const ContextCore> owner_;
  WorkspaceNeed holds_;
  std::uint64_t base_ = 0;
};

/// The workspace of a stream: its launches run in order and share it. It grows; smaller ones are
/// kept, because queued work may use them.
///
/// Threads: `address` from any thread at once.
class StreamWorkspace {
 public:
  /// Takes no lock if it is large enough.
  [[nodiscard]] std::uint64_t address(const ContextCore& core, WorkspaceNeed need) {
    const Workspace* const now = now_.load(std::memory_order_acquire);
    if (now == nullptr || !now->holds(need)) [[unlikely]] {
      return grow(core, need);
    }
    return now->address(need);
  }

 private:
  [[nodiscard]] std::uint64_t grow(const ContextCore& core, WorkspaceNeed need);

  std::atomic<const Workspace*> now_{nullptr};
  std::mutex mutex_;
  std::vector<std::unique_ptr<const Workspace>> all_;
};

/// Workspaces of the host's streams and of captures.
///
/// Threads: all members from any thread at once.
class Workspaces {
 public:
  /// For a launch that is queued or, if `captured`, recorded. Throws as Workspace.
  [[nodiscard]] std::uint64_t address(const Stream& stream, WorkspaceNeed need, bool captured);

 private:
  [[nodiscard]] std::uint64_t of_capture(const Stream& stream, WorkspaceNeed need);
  [[nodiscard]] StreamWorkspace& of_host(driver::CUstream handle);

  // Each thread has its own per-thread default stream.
  using HostStream = std::pair<std::uintptr_t, std::thread::id>;
  using CapturedStream = std::pair<std::uint64_t, driver::CUstream>;  // the capture's number
  std::mutex mutex_;
  std::map<HostStream, std::unique_ptr<StreamWorkspace>> hosts_;
  std::map<CapturedStream, std::weak_ptr<const Workspace>> captured_;
  /// Of the host's captures, whose graphs are unknown here.
  std::vector<std::shared_ptr<const Workspace>> kept_;
};

/// Whether a launch in that stream would be captured. Queries the driver only if that is possible.
[[nodiscard]] bool may_be_captured(const Stream& stream);

}  // namespace ptxgen::inline v0
