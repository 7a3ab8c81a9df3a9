// src/runtime/device/failed_launch_sink.hpp - who gets launches that fail on the emulated device
#pragma once

#include <memory>
#include <string>

#include "driver/emulated/notes.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/support/log.hpp"

namespace ptxgen::inline v0 {

/// Receives launches with a fault or an error, from any thread.
class FailedLaunchSink {
 public:
  FailedLaunchSink() = default;
  FailedLaunchSink(const FailedLaunchSink&) = delete;
  FailedLaunchSink& operator=(const FailedLaunchSink&) = delete;
  virtual ~FailedLaunchSink() = default;
  virtual void write(const driver::emulated::FailedLaunch& launch) = 0;
};

/// One that writes recordings into a folder (PTXGEN_REPRO), one for each kernel and set of rules,
/// and logs the command that replays them. `info` is the device's. Defined in `recording/`, which
/// includes this folder and is not included by it.
[[nodiscard]] std::unique_ptr<FailedLaunchSink> record_failed_launches(std::string folder,
                                                                       DeviceInfo info, Log log);

}  // namespace ptxgen::inline v0
