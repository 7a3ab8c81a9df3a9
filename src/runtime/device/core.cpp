// src/runtime/device/core.cpp - state shared by all objects of a context
#include "runtime/device/core.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "driver/emulated/notes.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

using driver::Table;

namespace {
/// More than any log of the library; bounds what a host never reads.
constexpr std::size_t kMaxDriverLog = std::size_t{4} << 20;

std::uint64_t mark_of(std::thread::id thread) noexcept {
  return std::uint64_t{1} << (std::hash<std::thread::id>{}(thread) % 64);
}
}  // namespace

// Suffix of the stand-in library's device names (docs/driver.md).
ContextCore::DriverLog::DriverLog(const Device& device)
    : emulated(is_emulated(device.info().kind)),
      standin(!emulated && device.info().name.ends_with("(emulated)") ? &device.table() : nullptr),
      findings(device.finding_store().shared_from_this()) {}

void ContextCore::DriverLog::receive(driver::CUlogLevel level, std::string_view text) {
  while (text.ends_with('\0') || text.ends_with('\n')) text.remove_suffix(1);
  // Findings of launches come by another way, with their launch.
  if (emulated && driver::emulated::in_report()) return;
  driver::CUcontext context = nullptr;
  const bool report =
      standin != nullptr && standin->ctx_get_current(&context) == driver::CUDA_ERROR_NOT_PERMITTED;
  report ? add_report(level, text) : add(text);
}

void ContextCore::DriverLog::add_report(driver::CUlogLevel level, std::string_view text) {
  {
    // A fault's error has the last one.
    const std::thread::id self = std::this_thread::get_id();
    const std::lock_guard lock(mutex);
    std::erase_if(messages, [&](const Message& message) {
      if (message.thread != self) return false;
      bytes -= message.text.size();
      return true;
    });
  }
  add(text);
  findings->log_text(level == driver::CU_LOG_LEVEL_ERROR ? LogLevel::Error : LogLevel::Warn, text);
}

void ContextCore::DriverLog::add(std::string_view text) {
  const std::thread::id thread = std::this_thread::get_id();
  const std::lock_guard lock(mutex);
  if (bytes + text.size() > kMaxDriverLog) {
    ++dropped;
    return;
  }
  messages.push_back({thread, std::string(text)});
  bytes += text.size();
  threads |= mark_of(thread);
}

std::string ContextCore::DriverLog::take(bool all) {
  const std::thread::id self = std::this_thread::get_id();
  std::string taken;
  const std::lock_guard lock(mutex);
  std::erase_if(messages, [&](const Message& message) {
    if (!all && message.thread != self) return false;
    taken += message.text + "\n";
    bytes -= message.text.size();
    return true;
  });
  if (dropped != 0) taken += format_text("({} later messages were dropped)\n", dropped);
  dropped = 0;
  std::uint64_t left = 0;
  for (const Message& message : messages) left |= mark_of(message.thread);
  threads = left;
  return taken;
}

void ContextCore::DriverLog::forget_own() noexcept {
  if ((threads.load(std::memory_order_relaxed) & mark_of(std::this_thread::get_id())) == 0) return;
  try {
    static_cast<void>(take(false));
  } catch (...) {  // out of memory: they stay
  }
}

std::shared_ptr<const ContextCore> ContextCore::open(const Device& device) {
  const auto core = std::make_shared<ContextCore>(device);
  core->ordinal_ = device.driver_ordinal();
  // From here on the destructor cleans up.
  must(core->table(), Stage::Device, &Table::device_primary_ctx_retain, &core->handle_,
       core->ordinal_);
  core->collect_driver_log();
  return core;
}

void ContextCore::collect_driver_log() {
  if (table().logs_register_callback == nullptr || table().logs_unregister_callback == nullptr) {
    return;
  }
  driver_log_ = std::make_unique<DriverLog>(device_);
  // Called by any thread, on a GPU possibly under locks of the driver: takes no lock but the
  // collector's.
  const driver::CUlogsCallback collect = [](void* data, driver::CUlogLevel level, char* message,
                                            std::size_t length) noexcept {
    try {
      static_cast<DriverLog*>(data)->receive(level, {message, length});
    } catch (...) {  // out of memory: errors lack the log
    }
  };
  const driver::CUresult result =
      table().logs_register_callback(collect, driver_log_.get(), &log_handle_);
  if (result == driver::CUDA_SUCCESS) return;
  // Errors then lack the driver's log.
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
  try {
    // A lost context releases everything. Its fault was reported by the call that observed it, or
    // on the emulated device when it happened.
    const bool known = is_sticky(first.result) &&
                       (fault_.load() == first.result || emulated_fault().code == first.result);
    log().write(known ? LogLevel::Debug : LogLevel::Warn, [&] {
      return format_text("{} in a clean-up; {}", first.text(),
                         second ? "the retry failed: " + second.text() : "the retry succeeded");
    });
  } catch (...) {  // out of memory: nothing is logged
  }
  return !second;
}

ContextCore::~ContextCore() {
  for (const Deferred& object : std::exchange(deferred_, {})) {
    release_now(object.kind, object.handle);
  }
  if (log_handle_ != nullptr) {
    const bool gone = twice([this]() -> FailedCall {
      return {&row_of(&Table::logs_unregister_callback),
              table().logs_unregister_callback(log_handle_)};
    });
    // The driver may still call back: leak rather than use freed memory.
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
  const bool sticky = is_sticky(failed.result);
  const bool emulated = is_emulated(device_.info().kind);
  // A GPU's fault may have been logged by a thread of its driver.
  if (driver_log_ != nullptr) error.log = driver_log_->take(sticky && !emulated);
  if (sticky) record_fault(error, failed);
  return std::move(error.refresh());
}

driver::emulated::FaultNote ContextCore::emulated_fault() const {
  if (!is_emulated(device_.info().kind)) return {};
  return driver::emulated::fault_note(handle_);
}

void ContextCore::record_fault(Error& error, const FailedCall& failed) const {
  const driver::emulated::FaultNote fault = emulated_fault();
  if (fault.code == failed.result) describe_fault(error, fault);
  const std::lock_guard lock(fault_mutex_);
  if (poisoned()) {
    error.code = "context-lost";
    error.message += "; the context was already lost: " + first_fault_->message;
    if (error.log.empty()) error.log = first_fault_->log;
    return;
  }
  error.code =
      failed.result == driver::CUDA_ERROR_CONTEXT_IS_DESTROYED ? "context-lost" : "device-fault";
  error.stage = Stage::Launch;
  first_fault_ = error;
  first_fault_->message = failed.text();
  fault_.store(failed.result, std::memory_order_release);
}

void ContextCore::throw_lost(Stage stage) const {
  const std::lock_guard lock(fault_mutex_);
  Error error = *first_fault_;
  error.stage = stage;
  error.code = "context-lost";
  error.message = format_text(
      "the context was lost: {}; destroy everything made from it, call Context::reset and make a "
      "new context",
      first_fault_->message);
  error.driver_status = fault_.load();
  throw error.refresh();
}

void ContextCore::throw_missing(Stage stage, const driver::FunctionInfo& function,
                                std::string_view what) const {
  throw Error(stage, "driver-too-old",
              format_text("{} needs {}, which came with CUDA {}; this driver is {}", what,
                          function.symbol, driver::version_text(function.since),
                          driver::version_text(device_.info().driver_version)));
}

void ContextCore::throw_other(Stage stage, std::string_view what) const {
  throw Error(stage, "other-context",
              std::string(what) + " belongs to another context; use objects made from one Context");
}

// Release -----------------------------------------------------------------------------------------

FailedCall ContextCore::call_release(Release kind, std::uint64_t handle) const noexcept {
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
    release(Release::Graph, graph);
  }
  switch (result) {
    // The capture has ended, as intended.
    case driver::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case driver::CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
    case driver::CUDA_ERROR_ILLEGAL_STATE:
      return {};
    default:
      return {&row_of(&Table::stream_end_capture), result};
  }
}

void ContextCore::release_now(Release kind, std::uint64_t handle) const noexcept {
  twice([&] { return call_release(kind, handle); });
}

void ContextCore::release(Release kind, std::uint64_t handle) const noexcept {
  if (handle == 0) return;
  if (capturing() && (kind == Release::Memory || kind == Release::Module)) {
    try {
      const std::lock_guard lock(capture_mutex_);
      // If the last capture has ended meanwhile, nothing would release it later.
      if (!captures_.empty()) {
        deferred_.push_back({kind, handle});
        return;
      }
    } catch (...) {  // out of memory: release now
    }
  }
  release_now(kind, handle);
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
  for (const Deferred& object : now) release_now(object.kind, object.handle);
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
  // Events draw streams into a capture. Keeping an object for every running capture is cheaper than
  // finding the right one.
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
