// src/runtime/device/launch_trace.hpp - launches on the emulator as spans and counter tracks
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/support/trace.hpp"

namespace ptxgen::inline v0 {

/// Adds launches of the emulator to a trace: a span of the executing thread named as the kernel,
/// and counter tracks that have the launch's values from its begin on. The track `KERNEL` has the
/// totals, `KERNEL:LINE OPCODE` those of one PTX line. A track gets new values only where they
/// differ from its last ones, so that equal launches cost one span each.
///
/// Threads: any at once.
class LaunchTrace {
 public:
  LaunchTrace() = default;  ///< off
  explicit LaunchTrace(const Trace& trace) { open(trace); }

  void open(Trace trace) noexcept;
  /// To be called by the executing thread when the launch has ended.
  void add(std::string_view kernel, const emulator::Result& result) noexcept {
    if (on_.load(std::memory_order_relaxed)) add_launch(kernel, result);
  }
  /// Lets go of the trace; later launches are not added.
  void close() noexcept;

 private:
  void add_launch(std::string_view kernel, const emulator::Result& result) noexcept;
  void add_track(const std::string& name, const std::vector<CounterValue>& values,
                 double microseconds_ago);
  void add_lines(std::string_view kernel, const emulator::Counters& counters,
                 double microseconds_ago);

  std::mutex mutex_;
  Trace trace_;
  std::atomic<bool> on_{false};
  std::unordered_map<std::string, std::vector<std::uint64_t>> last_;
};

}  // namespace ptxgen::inline v0
