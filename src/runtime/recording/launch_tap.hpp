// src/runtime/recording/launch_tap.hpp - a driver table that keeps launches instead of doing them
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ptxgen/driver/table.hpp"
#include "ptxgen/kernels/kernel.hpp"

namespace ptxgen::inline v0 {

/// A launch as the driver was asked for it.
struct TappedLaunch {
  std::string ptx;  ///< of the module; empty: it was loaded from machine code
  std::string kernel;
  LaunchGeometry geometry;
  std::vector<std::byte> block;  ///< the arguments
};

/// Passes calls on to another table, but keeps launches to itself and answers that they were done.
/// One in a process: functions of a table have no place for a pointer of ours. The constructor
/// waits until no other lives.
///
/// Threads: calls of the table from any thread.
class LaunchTap {
 public:
  explicit LaunchTap(const driver::Table& base);
  LaunchTap(const LaunchTap&) = delete;
  LaunchTap& operator=(const LaunchTap&) = delete;
  ~LaunchTap();

  [[nodiscard]] const driver::Table& table() const noexcept { return table_; }
  /// The launches since the tap was made.
  [[nodiscard]] const std::vector<TappedLaunch>& launches() const noexcept;

  struct Allocation {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };
  /// The memory, allocated through the tap and not freed, that an address is in.
  [[nodiscard]] std::optional<Allocation> allocation_of(std::uint64_t address) const;

 private:
  std::unique_lock<std::mutex> alone_;
  driver::Table table_;
};

}  // namespace ptxgen::inline v0
