// src/runtime/device/core.hpp - state shared by all objects of a context
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/support/log.hpp"
#include "ptxgen/support/trace.hpp"
#include "runtime/device/driver_error.hpp"
#include "runtime/device/finding_store.hpp"

namespace ptxgen::inline v0 {

/// Driver objects that destructors release.
enum class Release : std::uint8_t {
  Memory,
  Stream,
  Event,
  Module,
  Graph,
  GraphExec,
  Capture,  ///< of the stream: ended, its graph discarded
};

/// The table, the retained primary context, its fault, the driver's log and the running captures.
/// Objects made from the context share it; the last one releases it.
///
/// Threads: all members from any thread at once.
class ContextCore : public std::enable_shared_from_this<ContextCore> {
 public:
  /// Retains the primary context. Throws `Error` (Stage::Device, "driver-call").
  [[nodiscard]] static std::shared_ptr<const ContextCore> open(const Device& device);
  explicit ContextCore(const Device& device) : device_(device) {}
  ContextCore(const ContextCore&) = delete;
  ContextCore& operator=(const ContextCore&) = delete;
  ~ContextCore();

  [[nodiscard]] const Device& device() const noexcept { return device_; }
  [[nodiscard]] const driver::Table& table() const noexcept { return device_.table(); }
  [[nodiscard]] driver::CUcontext handle() const noexcept { return handle_; }
  [[nodiscard]] const Log& log() const noexcept { return device_.log(); }
  [[nodiscard]] const Trace& trace() const noexcept { return device_.trace(); }

  [[nodiscard]] bool poisoned() const noexcept {
    return fault_.load(std::memory_order_acquire) != driver::CUDA_SUCCESS;
  }
  /// Throws "context-lost", with the first fault's code and text, if the context is poisoned.
  void alive(Stage stage) const {
    if (poisoned()) [[unlikely]] {
      throw_lost(stage);
    }
  }

  /// Calls the driver; the context is current (`Current`). Throws the error of `failure`.
  template <class... P, class... A>
  void call(Stage stage, TableMember<P...> member, A... arguments) const {
    const driver::CUresult result = (table().*member)(arguments...);
    if (result != driver::CUDA_SUCCESS) [[unlikely]] {
      throw failure(stage, {&row_of(member), result});
    }
  }
  /// The Error for a call that failed: "device-fault" for the first fault that poisons the context,
  /// "context-lost" for later ones, else "driver-call". Includes the driver's log of the call and,
  /// for a fault, the finding that poisoned the context.
  [[nodiscard]] Error failure(Stage stage, const FailedCall& failed,
                              std::string_view doing = {}) const;
  /// Discards earlier log messages of this thread before a call.
  void before_call() const noexcept {
    if (driver_log_ != nullptr && driver_log_->threads.load(std::memory_order_relaxed) != 0)
        [[unlikely]] {
      driver_log_->forget_own();
    }
  }
  /// After a call that waited: throws the finding of strict mode (FindingStore).
  void waited() const { device_.finding_store().check(); }
  /// Throws `Error` ("driver-too-old") naming the function unless the table has it.
  template <class... P>
  void need(Stage stage, TableMember<P...> member, std::string_view what) const {
    if (table().*member == nullptr) throw_missing(stage, row_of(member), what);
  }
  /// Throws `Error` ("other-context") unless both contexts are the same one.
  void same(Stage stage, const ContextCore& other, std::string_view what) const {
    if (other.handle_ != handle_ || &other.table() != &table()) [[unlikely]] {
      throw_other(stage, what);
    }
  }

  /// `alive`, `Current` and `call` in one.
  template <class... P, class... A>
  void enter_and_call(Stage stage, TableMember<P...> member, A... arguments) const;

  /// For destructors: releases an object. Memory and modules, which a running capture might need,
  /// are kept until no capture runs. A failed call is retried once and logged.
  void release(Release kind, std::uint64_t handle) const noexcept;
  template <class T>
  void release(Release kind, T* handle) const noexcept {
    release(kind, std::uint64_t{reinterpret_cast<std::uintptr_t>(handle)});
  }

  /// Called before a capture of our own begins, and after it has ended or failed to begin. The
  /// latter returns the objects to keep for the graph.
  void capture_begins(driver::CUstream stream) const;
  [[nodiscard]] std::vector<std::shared_ptr<const void>> capture_ended(
      driver::CUstream stream) const noexcept;
  [[nodiscard]] bool capturing() const noexcept {
    return captures_running_.load(std::memory_order_acquire) != 0;
  }
  /// Whether a capture of our own that began in this stream is running.
  [[nodiscard]] bool capturing(driver::CUstream stream) const noexcept;
  /// Whether streams of the host are used with this context. The host may capture them unnoticed
  /// and draw in others.
  [[nodiscard]] bool has_borrowed() const noexcept {
    return has_borrowed_.load(std::memory_order_relaxed);
  }
  void note_borrowed() const noexcept { has_borrowed_.store(true, std::memory_order_relaxed); }
  /// Keeps an object that is launched during captures as long as their graphs.
  void keep_for_captures(const std::shared_ptr<const void>& object) const;

 private:
  friend class Current;
  struct Capture {
    driver::CUstream stream;
    std::vector<std::shared_ptr<const void>> kept;
  };
  struct Deferred {
    Release kind;
    std::uint64_t handle;
  };
  /// The driver's log messages by thread: the calling thread, or one of the driver.
  struct DriverLog {
    struct Message {
      std::thread::id thread;
      std::string text;
    };
    explicit DriverLog(const Device& device);
    /// Receives a message of the driver's callback.
    void receive(driver::CUlogLevel level, std::string_view text);
    void add(std::string_view text);
    /// A finding of a launch on the stand-in, reported by its own thread.
    void add_report(driver::CUlogLevel level, std::string_view text);
    /// Removes and returns the messages of this thread, or all.
    [[nodiscard]] std::string take(bool all);
    void forget_own() noexcept;

    const bool emulated;
    const driver::Table* const standin;  ///< null: another driver
    const std::shared_ptr<FindingStore> findings;
    std::atomic<std::uint64_t> threads{0};  ///< a bit for each thread that has messages
    std::mutex mutex;
    std::vector<Message> messages;
    std::size_t bytes = 0;
    std::size_t dropped = 0;
  };

  [[noreturn]] void throw_lost(Stage stage) const;
  [[noreturn]] void throw_missing(Stage stage, const driver::FunctionInfo& function,
                                  std::string_view what) const;
  [[noreturn]] void throw_other(Stage stage, std::string_view what) const;
  [[nodiscard]] FailedCall call_release(Release kind, std::uint64_t handle) const noexcept;
  [[nodiscard]] FailedCall abandon_capture(driver::CUstream stream) const noexcept;
  void release_now(Release kind, std::uint64_t handle) const noexcept;
  template <class Attempt>
  bool twice(const Attempt& attempt) const noexcept;
  void collect_driver_log();
  /// The finding that poisoned the context on the emulated device; none on a GPU.
  [[nodiscard]] driver::emulated::FaultNote emulated_fault() const;
  /// Adds the details of a fault to the error, and stores the first fault.
  void record_fault(Error& error, const FailedCall& failed) const;

  const Device device_;
  driver::CUdevice ordinal_ = 0;
  driver::CUcontext handle_ = nullptr;

  mutable std::atomic<driver::CUresult> fault_{driver::CUDA_SUCCESS};
  mutable std::mutex fault_mutex_;
  mutable std::optional<Error> first_fault_;

  std::unique_ptr<DriverLog> driver_log_;
  driver::CUlogsCallbackHandle log_handle_ = nullptr;

  mutable std::atomic<bool> has_borrowed_{false};
  mutable std::atomic<int> captures_running_{0};
  mutable std::mutex capture_mutex_;
  mutable std::vector<Capture> captures_;
  mutable std::vector<Deferred> deferred_;
};

/// Makes the context current for its lifetime and then restores the thread's context.
class Current {
 public:
  /// Throws `Error` ("context-lost", "driver-call").
  Current(const ContextCore& core, Stage stage) : Current(core) {
    if (failed_) [[unlikely]] {
      throw core.failure(stage, failed_);
    }
  }
  /// For destructors: `failed()` has the failure.
  explicit Current(const ContextCore& core) noexcept : core_(core) {
    core.before_call();
    const driver::Table& table = core.table();
    driver::CUcontext now = nullptr;
    driver::CUresult result = table.ctx_get_current(&now);
    if (result != driver::CUDA_SUCCESS) [[unlikely]] {
      failed_ = {&row_of(&driver::Table::ctx_get_current), result};
      return;
    }
    if (now == core.handle_) return;
    result = table.ctx_push_current(core.handle_);
    if (result != driver::CUDA_SUCCESS) {
      failed_ = {&row_of(&driver::Table::ctx_push_current), result};
      return;
    }
    pushed_ = true;
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    if (pushed_) pop();
  }
  [[nodiscard]] const FailedCall& failed() const noexcept { return failed_; }

 private:
  void pop() const noexcept;

  const ContextCore& core_;
  FailedCall failed_;
  bool pushed_ = false;
};

template <class... P, class... A>
void ContextCore::enter_and_call(Stage stage, TableMember<P...> member, A... arguments) const {
  alive(stage);
  const Current current(*this, stage);
  call(stage, member, arguments...);
}

}  // namespace ptxgen::inline v0
