// src/runtime/device/workspace.cpp - device memory for partial sums of split GEMVs
#include "runtime/device/workspace.hpp"

#include <algorithm>
#include <bit>

#include "runtime/device/owned.hpp"
#include "runtime/device/stream_owner.hpp"

namespace ptxgen::inline v0 {

using driver::Table;

namespace {

constexpr WorkspaceNeed kMin = {4096, 65536};

/// Allows this thread to allocate and to wait during captures of other streams and threads.
class Relaxed {
 public:
  explicit Relaxed(const ContextCore& core) : core_(core) { exchange(); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;
  ~Relaxed() { exchange(); }

 private:
  void exchange() noexcept {
    // Older drivers lack the function: an allocation may then invalidate a capture.
    if (core_.table().thread_exchange_stream_capture_mode == nullptr) return;
    static_cast<void>(core_.table().thread_exchange_stream_capture_mode(&mode_));
  }
  const ContextCore& core_;
  driver::CUstreamCaptureMode mode_ = driver::CU_STREAM_CAPTURE_MODE_RELAXED;
};

WorkspaceNeed larger(WorkspaceNeed a, WorkspaceNeed b) {
  return {std::max(a.tickets, b.tickets), std::max(a.parts, b.parts)};
}

/// Number of the stream's capture; 0 if the driver is too old.
std::uint64_t capture_number(const Stream& stream) {
  const ContextCore& core = stream.core();
  const Current current(core, Stage::Launch);
  driver::CUstreamCaptureStatus status = driver::CU_STREAM_CAPTURE_STATUS_NONE;
  std::uint64_t number = 0;
  const Table& table = core.table();
  if (table.stream_get_capture_info_v3 != nullptr) {
    core.call(Stage::Launch, &Table::stream_get_capture_info_v3, stream.handle(), &status, &number,
              nullptr, nullptr, nullptr, nullptr);
  } else if (table.stream_get_capture_info_v2 != nullptr) {
    core.call(Stage::Launch, &Table::stream_get_capture_info_v2, stream.handle(), &status, &number,
              nullptr, nullptr, nullptr);
  }
  return number;
}

}  // namespace

Workspace::Workspace(const ContextCore& core, std::shared_ptr<const ContextCore> owner,
                     WorkspaceNeed holds)
    : core_(core), owner_(std::move(owner)), holds_(holds) {
  core.alive(Stage::Device);
  const Current current(core, Stage::Device);
  const Relaxed relaxed(core);
  base_ = allocate(core, holds.tickets + holds.parts, "for partial sums of a GEMV");
  if (holds.tickets == 0) return;
  driver::CUstream stream = nullptr;
  try {
    // A separate stream: others may be captured or busy.
    core.call(Stage::Device, &Table::stream_create, &stream,
              static_cast<unsigned>(driver::CU_STREAM_NON_BLOCKING));
    core.call(Stage::Device, &Table::memset_d32_async, base_, 0u,
              static_cast<std::size_t>(holds.tickets / 4), stream);
    core.call(Stage::Device, &Table::stream_synchronize, stream);
  } catch (...) {
    if (stream != nullptr) core.release(Release::Stream, stream);
    core.release(Release::Memory, base_);
    throw;
  }
  core.release(Release::Stream, stream);
}

Workspace::~Workspace() { core_.release(Release::Memory, base_); }

std::uint64_t StreamWorkspace::grow(const ContextCore& core, WorkspaceNeed need) {
  const std::lock_guard lock(mutex_);
  const Workspace* const now = now_.load(std::memory_order_relaxed);
  if (now != nullptr && now->holds(need)) return now->address(need);
  // Doubling: all outgrown workspaces together are smaller than the last.
  const auto up = [](std::uint64_t wanted) { return std::bit_ceil(wanted); };
  WorkspaceNeed next = larger(kMin, need);
  if (now != nullptr) next = larger(next, now->size());
  next = {up(next.tickets), up(next.parts)};
  all_.reserve(all_.size() + 1);
  all_.push_back(std::make_unique<const Workspace>(core, nullptr, next));
  now_.store(all_.back().get(), std::memory_order_release);
  return all_.back()->address(need);
}

StreamWorkspace& Workspaces::of_host(driver::CUstream handle) {
  auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number == driver::kStreamLegacy) number = 0;
  const bool per_thread = number == driver::kStreamPerThread;
  const HostStream key{number, per_thread ? std::this_thread::get_id() : std::thread::id{}};
  const std::lock_guard lock(mutex_);
  std::unique_ptr<StreamWorkspace>& found = hosts_[key];
  if (found == nullptr) found = std::make_unique<StreamWorkspace>();
  return *found;
}

// Each stream of a capture has its own workspace, because branches of a graph run concurrently.
// Plain launches and other graphs do not use it.
std::uint64_t Workspaces::of_capture(const Stream& stream, WorkspaceNeed need) {
  const ContextCore& core = stream.core();
  const CapturedStream key{capture_number(stream), stream.handle()};
  const std::lock_guard lock(mutex_);
  if (key.first != 0) {
    const auto found = captured_.find(key);
    if (found != captured_.end()) {
      const std::shared_ptr<const Workspace> known = found->second.lock();
      if (known != nullptr && known->holds(need)) return known->address(need);
    }
  }
  const auto result =
      std::make_shared<const Workspace>(core, core.shared_from_this(), larger(kMin, need));
  if (core.capturing()) core.keep_for_captures(result);
  const bool hosts = stream.is_borrowed() || !core.capturing() ||
                     (core.has_borrowed() && !core.capturing(stream.handle()));
  if (hosts) kept_.push_back(result);
  std::erase_if(captured_, [](const auto& entry) { return entry.second.expired(); });
  captured_[key] = result;
  return result->address(need);
}

std::uint64_t Workspaces::address(const Stream& stream, WorkspaceNeed need, bool captured) {
  if (captured) return of_capture(stream, need);
  if (stream.is_borrowed()) return of_host(stream.handle()).address(stream.core(), need);
  return StreamAccess::workspace(stream).address(stream.core(), need);
}

bool may_be_captured(const Stream& stream) {
  const ContextCore& core = stream.core();
  // An event can draw a stream of ours into a capture of the host.
  if (!core.capturing() && !core.has_borrowed()) return false;
  return stream.capturing();
}

}  // namespace ptxgen::inline v0
