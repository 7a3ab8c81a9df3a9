// src/cli/commands/launch_observer.hpp - what the emulated driver saw of a launch
#pragma once

#include <mutex>
#include <optional>

#include "cli/output/run_report.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/runtime/device/device.hpp"

namespace ptxgen::cli {

/// Keeps the result of the last launch of an emulated context, and shows progress, while it lives.
class LaunchObserver {
 public:
  /// `options`: the checks of all later launches. `bar` must outlive the observer.
  LaunchObserver(const Context& context, emulator::Options options, ProgressBar& bar);
  LaunchObserver(const LaunchObserver&) = delete;
  LaunchObserver& operator=(const LaunchObserver&) = delete;
  ~LaunchObserver();

  /// After a synchronisation; empty if nothing was launched.
  [[nodiscard]] std::optional<emulator::Result> result() const;

 private:
  static void report(void* user, const driver::emulated::LaunchReport& launch);

  driver::CUcontext context_;
  mutable std::mutex mutex_;
  std::optional<emulator::Result> result_;
};

}  // namespace ptxgen::cli
