// src/runtime/device/finding_store.hpp - the findings of a device: kept, logged, handed on, thrown
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/emulated/notes.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/device/failed_launch_sink.hpp"
#include "runtime/device/launch_trace.hpp"

namespace ptxgen::inline v0 {

/// Sums over launches.
struct LaunchTotals {
  std::uint64_t launches = 0;
  double seconds = 0;           ///< host time
  emulator::Counters counters;  ///< without those of single launches, opcodes and lines
};

/// Listens to the launches of the modules that a device has loaded on the emulator. Shared by the
/// device's copies and by its modules.
///
/// Threads: all members from any thread at once. Log and sink are called without the lock.
class FindingStore : public driver::emulated::LaunchListener,
                     public std::enable_shared_from_this<FindingStore> {
 public:
  /// `failed`: may be null, else gets the launches that fail.
  FindingStore(Log log, bool strict, std::unique_ptr<FailedLaunchSink> failed)
      : log_(std::move(log)), strict_(strict), failed_(std::move(failed)) {}

  void ended(const driver::emulated::LaunchReport& launch) noexcept override;
  [[nodiscard]] bool keeps_failed() const noexcept override { return failed_ != nullptr; }
  void failed(const driver::emulated::FailedLaunch& launch) noexcept override;

  /// Logs a finding of which only the text is known, as the stand-in library logs it.
  void log_text(LogLevel level, std::string_view text);

  [[nodiscard]] std::vector<LaunchFinding> select(
      const std::function<bool(const LaunchFinding&)>& wanted) const;
  [[nodiscard]] FindingCounts counts() const;
  void clear();
  /// Of the launches since `clear_totals`.
  [[nodiscard]] LaunchTotals totals() const;
  void clear_totals();
  void set_sink(FindingSink sink);
  /// Adds later launches to a trace, until `close_trace` at the end of the device: modules that
  /// cannot be unloaded from a lost context keep this object, and must not keep the trace from
  /// being written.
  void open_trace(const Trace& trace) noexcept { trace_.open(trace); }
  void close_trace() noexcept { trace_.close(); }

  [[nodiscard]] bool strict() const noexcept { return strict_; }
  /// For calls that wait, after they have: throws what strict mode has not thrown yet.
  void check() const {
    if (strict_ && has_pending_.load(std::memory_order_acquire)) [[unlikely]] {
      throw_pending();
    }
  }

 private:
  struct Sink {
    explicit Sink(FindingSink of) noexcept : sink(of) {}
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;
    ~Sink() {
      if (sink.release != nullptr) sink.release(sink.user);
    }
    const FindingSink sink;
  };
  struct Message {
    LogLevel level = LogLevel::Off;
    std::string text;
  };
  /// Counts a finding and keeps it as an object. With the lock held, as the next two.
  void keep(const LaunchFinding& finding);
  /// What the log gets of an entry; in strict mode an error is kept to be thrown.
  [[nodiscard]] Message message_of(const LaunchFinding& finding, const std::string& cause);
  /// In how many launches that cause has been met by now.
  [[nodiscard]] std::uint64_t count_cause(const std::string& cause);
  void throw_pending() const;

  const Log log_;
  const bool strict_;
  const std::unique_ptr<FailedLaunchSink> failed_;
  mutable std::mutex mutex_;
  std::vector<LaunchFinding> kept_;
  FindingCounts counts_;
  LaunchTotals totals_;
  std::unordered_map<std::string, std::uint64_t> launches_by_cause_;
  std::shared_ptr<const Sink> sink_;
  mutable std::vector<LaunchFinding> pending_;
  mutable std::uint64_t pending_more_ = 0;
  mutable std::atomic<bool> has_pending_{false};
  LaunchTrace trace_;
};

/// A fault of the emulated device in the fields of an error: kernel, statement, C++ call or line of
/// a file, and the finding as its log.
void describe_fault(Error& error, const driver::emulated::FaultNote& fault);

/// Whether a setting of 0 or 1 is on. Throws `Error` (Stage::Device, "bad-setting").
[[nodiscard]] bool is_on(std::string_view variable, std::string_view value);

}  // namespace ptxgen::inline v0
