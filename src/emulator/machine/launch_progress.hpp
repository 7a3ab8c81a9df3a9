// src/emulator/machine/launch_progress.hpp - progress and instruction budget of a launch
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>

#include "emulator/report/report.hpp"

namespace ptxgen::inline v0::emulator {

/// Counts the finished blocks of a launch, in launch order for the budget, and calls
/// Options::progress. Thread-safe.
class LaunchProgress {
 public:
  /// `group`: blocks that end together (a cluster), with consecutive orders.
  LaunchProgress(const Options& options, Reporter& reporter, std::uint64_t blocks,
                 std::uint32_t group);

  /// The group whose first block has position `order` in the launch order has ended after
  /// `instructions` warp instructions. Stops the launch after the block that exceeds the budget.
  void ended(std::uint64_t order, std::uint64_t instructions);
  /// Call from time to time while blocks run.
  void running();

 private:
  using Clock = std::chrono::steady_clock;
  void spend(std::uint64_t order, std::uint64_t instructions);
  void report(Clock::time_point now);

  const Options& options_;
  Reporter& reporter_;
  std::uint64_t blocks_;
  std::uint32_t group_;
  std::mutex mutex_;
  std::uint64_t done_ = 0;
  Clock::time_point last_report_;
  std::uint64_t next_ = 0;                        ///< the first order that has not ended
  std::uint64_t spent_ = 0;                       ///< by all groups before `next_`
  std::map<std::uint64_t, std::uint64_t> ahead_;  ///< instructions of later groups, by order
  bool exceeded_ = false;
};

}  // namespace ptxgen::inline v0::emulator
