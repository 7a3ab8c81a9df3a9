// src/cli/commands/launch_statistics.hpp - launches of an emulated context, by kernel
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/runtime/device/device.hpp"

namespace ptxgen::cli {

/// All launches of one kernel.
struct KernelStatistics {
  std::string kernel;
  std::uint64_t launches = 0;
  std::uint64_t lane_instructions = 0;  ///< of counted launches, summed over active lanes
  double seconds = 0;                   ///< of the host, execution only
};

/// Sums over kernels.
[[nodiscard]] KernelStatistics total(const std::vector<KernelStatistics>& kernels);

/// Counts the launches of an emulated context while it lives; their instructions, which takes time,
/// only between `count_instructions(true)` and `count_instructions(false)`.
class LaunchStatistics {
 public:
  /// `options`: of all later launches, but for the counters.
  LaunchStatistics(const Context& context, const emulator::Options& options);
  LaunchStatistics(const LaunchStatistics&) = delete;
  LaunchStatistics& operator=(const LaunchStatistics&) = delete;
  ~LaunchStatistics();

  /// Of launches that are queued later.
  void count_instructions(bool on);
  /// Launches that have ended since the last call, the kernel that took longest first. To be called
  /// after a synchronisation.
  [[nodiscard]] std::vector<KernelStatistics> take();

 private:
  static void report(void* user, const driver::emulated::LaunchReport& launch);

  driver::CUcontext context_;
  emulator::Options options_;
  std::mutex mutex_;
  std::map<std::string, KernelStatistics, std::less<>> kernels_;
};

}  // namespace ptxgen::cli
