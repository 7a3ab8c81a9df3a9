// src/runtime/recording/failed_launches.hpp - launches that fail on the emulated device, recorded
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "driver/emulated/notes.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/runtime/recording/recording.hpp"
#include "ptxgen/support/log.hpp"

namespace ptxgen::inline v0 {

/// A recording of one frame that fails as `launch` did: buffers are the memory that its arguments
/// point into. `info` is the device's.
[[nodiscard]] Recording recording_of(const driver::emulated::FailedLaunch& launch,
                                     const DeviceInfo& info);

/// Writes recordings into a folder (PTXGEN_REPRO), one for each kernel and kind of failure, and
/// logs the command that replays them. Threads: `write` from any thread.
class FailedLaunches {
 public:
  FailedLaunches(std::string folder, DeviceInfo info, Log log)
      : folder_(std::move(folder)), info_(std::move(info)), log_(std::move(log)) {}

  void write(const driver::emulated::FailedLaunch& launch);

 private:
  const std::string folder_;
  const DeviceInfo info_;
  const Log log_;
  std::mutex mutex_;
  std::set<std::string> written_;  ///< kernel and failure
};

}  // namespace ptxgen::inline v0
