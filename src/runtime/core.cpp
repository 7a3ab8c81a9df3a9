// src/runtime/core.cpp - what everything made from one context shares
#include "runtime/core.hpp"

#include <algorithm>
#include <utility>

namespace ptxgen::inline v0 {

using driver::Table;

namespace {
/// More than any log of ours; what a host never asks for must not grow for ever.
constexpr std::size_t kLongestDriverLog = std::size_t{4} << 20;
}  // namespace

std::string ContextCore::DriverLog::take() {
  const std::lock_guard lock(mutex);
  std::string taken = std::exchange(text, {});
  if (dropped != 0) taken += "(" + std::to_string(dropped) + " later messages were dropped)\n";
  dropped = 0;
  return taken;
}

std::shared_ptr<const ContextCore> ContextCore::open(const Device& device) {
  const auto core = std::make_shared<ContextCore>(device);
  core->ordinal_ = device.driver_ordinal();
  // From here on the destructor releases whatever there is.
  must(core->table(), Stage::Device, &Table::device_primary_ctx_retain, &core->handle_,
       core->ordinal_);
  core->collect_driver_log();
  return core;
}

void ContextCore::collect_driver_log() {
  if (table().logs_register_callback == nullptr || table().logs_unregister_callback == nullptr) {
    return;
  }
  driver_log_ = std::make_unique<DriverLog>();
  // Called by whatever thread has something to say, maybe under locks of the driver: nothing of
  // ours but the collector's own lock is touched.
  const driver::CUlogsCallback collect = [](void* data, driver::CUlogLevel, char* message,
                                            std::size_t length) noexcept {
    auto& log = *static_cast<DriverLog*>(data);
    const std::lock_guard lock(log.mutex);
    if (log.text.size() + length > kLongestDriverLog) {
      ++log.dropped;
      return;
    }
    while (length != 0 && (message[length - 1] == '\0' || message[length - 1] == '\n')) --length;
    log.text.append(message, length).push_back('\n');
  };
  const driver::CUresult result =
      table().logs_register_callback(collect, driver_log_.get(), &log_handle_);
  if (result == driver::CUDA_SUCCESS) return;
  // Errors are poorer without the driver's words, that is all.
  log_handle_ = nullptr;
  driver_log_.reset();
  log().warn([&] {
    return FailedCall{&row_of(&Table::logs_register_callback), result}.text() +
           "; errors will lack what the driver logs";
  });
}

template <class Attempt>
bool ContextCore::twice(const Attempt& attempt) const noexcept {
  const FailedCall first = attempt();
  if (!first) return true;
  const FailedCall second = attempt();
  // A lost context takes everything along; its fault was reported where it was met.
  const bool known = is_sticky(first.result) && fault_.load() == first.result;
  try {
    log().write(known ? LogLevel::Debug : LogLevel::Warn, [&] {
      return first.text() + " in a clean-up; " +
             (second ? "tried again in vain: " + second.text() : "tried again, that worked");
    });
  } catch (...) {  // without memory there is nothing to say it with
  }
  return !second;
}

ContextCore::~ContextCore() {
  for (const Deferred& object : std::exchange(deferred_, {})) {
    let_go_now(object.kind, object.handle);
  }
  if (log_handle_ != nullptr) {
    const bool gone = twice([this]() -> FailedCall {
      return {&row_of(&Table::logs_unregister_callback),
              table().logs_unregister_callback(log_handle_)};
    });
    // The driver may still call back: better a small leak than memory that is gone.
    if (!gone) static_cast<void>(driver_log_.release());
  }
  if (handle_ != nullptr) {
    twice([this]() -> FailedCall {
      return {&row_of(&Table::device_primary_ctx_release),
              table().device_primary_ctx_release(ordinal_)};
    });
  }
}

Error ContextCore::failure(Stage stage, const FailedCall& failed, std::string_view doing) const {
  Error error = driver_error(stage, failed, doing);
  if (driver_log_ != nullptr) error.log = driver_log_->take();
  if (is_sticky(failed.result)) {
    const std::lock_guard lock(fault_mutex_);
    if (poisoned()) {
      error.code = "context-lost";
      error.message += "; the context was lost before: " + fault_text_;
      if (error.log.empty()) error.log = fault_log_;
    } else {
      error.code = failed.result == driver::CUDA_ERROR_CONTEXT_IS_DESTROYED ? "context-lost"
                                                                            : "device-fault";
      error.stage = Stage::Launch;
      fault_text_ = failed.text();
      fault_log_ = error.log;
      fault_.store(failed.result, std::memory_order_release);
    }
  }
  return std::move(error.refresh());
}

void ContextCore::throw_lost(Stage stage) const {
  const std::lock_guard lock(fault_mutex_);
  Error error(stage, "context-lost",
              "the context was lost: " + fault_text_ +
                  "; let go of everything made from it, call Context::reset and start afresh");
  error.driver_status = fault_.load();
  error.log = fault_log_;
  throw error.refresh();
}

void ContextCore::throw_missing(Stage stage, const driver::FunctionInfo& function,
                                std::string_view what) const {
  throw Error(stage, "driver-too-old",
              std::string(what) + " needs " + std::string(function.symbol) +
                  ", which came with CUDA " + driver::version_text(function.since) +
                  "; this driver is " + driver::version_text(device_.info().driver_version));
}

void ContextCore::throw_other(Stage stage, std::string_view what) const {
  throw Error(stage, "other-context",
              std::string(what) + " belongs to another context; use objects made from one Context");
}

// Letting go --------------------------------------------------------------------------------------

FailedCall ContextCore::release(Release kind, std::uint64_t handle) const noexcept {
  const Current current(*this);
  if (current.failed()) return current.failed();
  const auto done = [&](auto member, auto object) -> FailedCall {
    return {&row_of(member), (table().*member)(object)};
  };
  void* const object = reinterpret_cast<void*>(static_cast<std::uintptr_t>(handle));
  switch (kind) {
    case Release::Memory:
      return done(&Table::mem_free, driver::CUdeviceptr{handle});
    case Release::Stream:
      return done(&Table::stream_destroy, static_cast<driver::CUstream>(object));
    case Release::Event:
      return done(&Table::event_destroy, static_cast<driver::CUevent>(object));
    case Release::Module:
      return done(&Table::module_unload, static_cast<driver::CUmodule>(object));
    case Release::Graph:
      return done(&Table::graph_destroy, static_cast<driver::CUgraph>(object));
    case Release::GraphExec:
      return done(&Table::graph_exec_destroy, static_cast<driver::CUgraphExec>(object));
    case Release::Capture:
      return abandon_capture(static_cast<driver::CUstream>(object));
  }
  return {};
}

FailedCall ContextCore::abandon_capture(driver::CUstream stream) const noexcept {
  driver::CUgraph graph = nullptr;
  const driver::CUresult result = table().stream_end_capture(stream, &graph);
  if (graph != nullptr && result == driver::CUDA_SUCCESS) {
    let_go(Release::Graph, graph);
  }
  switch (result) {
    // There is no capture any more, which is what was wanted.
    case driver::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case driver::CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
    case driver::CUDA_ERROR_ILLEGAL_STATE:
      return {};
    default:
      return {&row_of(&Table::stream_end_capture), result};
  }
}

void ContextCore::let_go_now(Release kind, std::uint64_t handle) const noexcept {
  twice([&] { return release(kind, handle); });
}

void ContextCore::let_go(Release kind, std::uint64_t handle) const noexcept {
  if (handle == 0) return;
  if (capturing() && (kind == Release::Memory || kind == Release::Module)) {
    try {
      const std::lock_guard lock(capture_mutex_);
      // The last capture may have ended meanwhile, and nobody would look here again.
      if (!captures_.empty()) {
        deferred_.push_back({kind, handle});
        return;
      }
    } catch (...) {  // no memory for the note: now, then
    }
  }
  let_go_now(kind, handle);
}

// Captures ----------------------------------------------------------------------------------------

void ContextCore::capture_begins(driver::CUstream stream) const {
  const std::lock_guard lock(capture_mutex_);
  captures_.push_back({stream, {}});
  captures_running_.store(static_cast<int>(captures_.size()), std::memory_order_release);
}

std::vector<std::shared_ptr<const void>> ContextCore::capture_ended(
    driver::CUstream stream) const noexcept {
  std::vector<std::shared_ptr<const void>> kept;
  std::vector<Deferred> now;
  {
    const std::lock_guard lock(capture_mutex_);
    const auto at = std::find_if(captures_.begin(), captures_.end(),
                                 [&](const Capture& c) { return c.stream == stream; });
    if (at == captures_.end()) return kept;
    kept = std::move(at->kept);
    captures_.erase(at);
    captures_running_.store(static_cast<int>(captures_.size()), std::memory_order_release);
    if (captures_.empty()) now = std::exchange(deferred_, {});
  }
  for (const Deferred& object : now) let_go_now(object.kind, object.handle);
  return kept;
}

bool ContextCore::capturing(driver::CUstream stream) const noexcept {
  if (!capturing()) return false;
  const std::lock_guard lock(capture_mutex_);
  return std::any_of(captures_.begin(), captures_.end(),
                     [&](const Capture& c) { return c.stream == stream; });
}

void ContextCore::keep_for_captures(const std::shared_ptr<const void>& object) const {
  if (!capturing()) return;
  const std::lock_guard lock(capture_mutex_);
  // Streams are drawn into a capture by events; to keep something for a graph that does not need it
  // costs less than to find out.
  for (Capture& capture : captures_) {
    if (std::find(capture.kept.begin(), capture.kept.end(), object) == capture.kept.end()) {
      capture.kept.push_back(object);
    }
  }
}

void Current::pop() const noexcept {
  core_.twice([this]() -> FailedCall {
    driver::CUcontext popped = nullptr;
    return {&row_of(&Table::ctx_pop_current), core_.table().ctx_pop_current(&popped)};
  });
}

}  // namespace ptxgen::inline v0
