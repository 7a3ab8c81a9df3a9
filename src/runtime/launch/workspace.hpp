// src/runtime/launch/workspace.hpp - device memory for partial sums of split GEMVs
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "ptxgen/runtime/device/stream.hpp"
#include "runtime/device/core.hpp"

namespace ptxgen::inline v0 {

/// What a plan needs: tickets, which are 0 between launches, and behind them room for parts, which
/// nobody initialises. Bytes, multiples of 16.
struct WorkspaceNeed {
  std::uint64_t tickets = 0;
  std::uint64_t parts = 0;
  [[nodiscard]] bool none() const noexcept { return tickets == 0 && parts == 0; }
};

/// One allocation: tickets that are 0, then room for parts. A plan gets the last of the tickets, so
/// that plans of all sizes find their parts behind all tickets, and none leaves a part where
/// another has a ticket.
class Workspace {
 public:
  /// Returns when the tickets are 0. Safe while streams are being captured, by whatever thread.
  /// `owner` null: for what `core` outlives anyway. Throws `Error` (Stage::Device):
  /// "out-of-memory", "driver-call".
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

/// The workspace of a stream: launches in it run one after the other and share it. It grows;
/// earlier, smaller ones stay, since work may be queued that uses them.
///
/// Threads: `address` from any thread at once.
class StreamWorkspace {
 public:
  /// Takes no lock where it is large enough.
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

/// The workspaces that belong to no stream of ours: of the host's streams, and of captures.
///
/// Threads: all members from any thread at once.
class Workspaces {
 public:
  /// For a launch that is queued now, or written down where `captured`. Throws as Workspace.
  [[nodiscard]] std::uint64_t address(const Stream& stream, WorkspaceNeed need, bool captured);

 private:
  [[nodiscard]] std::uint64_t of_capture(const Stream& stream, WorkspaceNeed need);
  [[nodiscard]] StreamWorkspace& of_host(driver::CUstream handle);

  // The per-thread default stream is another one in each thread.
  using HostStream = std::pair<std::uintptr_t, std::thread::id>;
  using CapturedStream = std::pair<std::uint64_t, driver::CUstream>;  // the capture's number
  std::mutex mutex_;
  std::map<HostStream, std::unique_ptr<StreamWorkspace>> hosts_;
  std::map<CapturedStream, std::weak_ptr<const Workspace>> captured_;
  /// Of the host's captures, whose graphs we do not see.
  std::vector<std::shared_ptr<const Workspace>> kept_;
};

/// Whether a launch in that stream would be written down instead of run. Asks the driver only where
/// that is possible.
[[nodiscard]] bool may_be_captured(const Stream& stream);

}  // namespace ptxgen::inline v0
