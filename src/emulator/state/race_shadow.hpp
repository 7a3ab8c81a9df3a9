// src/emulator/state/race_shadow.hpp - last accesses to device memory, for races
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "support/virtual_memory.hpp"

namespace ptxgen::inline v0::emulator {

/// The last accesses to each 4-byte granule of device memory, in 16 bytes that are committed on
/// first use and never cleared; and to each line of 32 granules, in 16 more: an access of a warp to
/// a whole line costs one check instead of 32. Ids increase over launches; ids below a launch's
/// first one are of earlier launches.
class GlobalShadow {
 public:
  /// Throws `Error` (Stage::Emulate, code "out-of-memory").
  GlobalShadow(std::uint64_t base, std::uint64_t bytes);

  [[nodiscard]] bool holds(std::uint64_t address, std::uint64_t bytes) const noexcept {
    return address >= base_ && address - base_ < bytes_ && bytes <= bytes_ - (address - base_);
  }
  [[nodiscard]] std::uint64_t granule(std::uint64_t address) const noexcept {
    return (address - base_) / 4;
  }
  [[nodiscard]] std::uint64_t address(std::uint64_t granule) const noexcept {
    return base_ + granule * 4;
  }
  /// Call before using granules. Thread-safe.
  void touch(std::uint64_t granule, std::uint64_t count) {
    for (std::uint64_t at = granule / kStep; at <= (granule + count - 1) / kStep; ++at) {
      if (__atomic_load_n(&touched_[at], __ATOMIC_ACQUIRE) == 0) commit(at);
    }
  }
  std::uint32_t* written = nullptr;     ///< id of the last write
  std::uint32_t* write_info = nullptr;  ///< see GlobalRaces
  std::uint32_t* read = nullptr;        ///< id of the first of the last reads
  std::uint32_t* read_info = nullptr;
  /// By line: the access of all its granules, whatever their own entries; or that the entries of
  /// the granules are valid; an old id: no access in this launch.
  std::uint32_t* line_written = nullptr;
  std::uint32_t* line_write_info = nullptr;
  std::uint32_t* line_read = nullptr;
  std::uint32_t* line_read_info = nullptr;
  std::atomic<std::uint32_t> next_id{1};
  /// Memory for copies, kept between launches: allocating it takes longer than copying.
  std::vector<std::unique_ptr<std::byte[]>> spare;
  /// Removes all accesses, when ids run out.
  void reset();
  [[nodiscard]] std::uint64_t bytes() const noexcept { return touched_bytes_; }

  static constexpr std::uint64_t kLineGranules = 32;
  /// Pages of device memory, which a launch copies before writing: the epoch of the last launch
  /// that copied a page.
  static constexpr std::uint64_t kPageBytes = 4096;
  [[nodiscard]] std::uint32_t next_epoch();
  [[nodiscard]] std::uint32_t saved(std::uint64_t page) const noexcept { return saved_[page]; }
  void set_saved(std::uint64_t page, std::uint32_t epoch) noexcept { saved_[page] = epoch; }

 private:
  static constexpr std::uint64_t kStep = 16384;  ///< granules committed at once
  std::uint64_t base_;
  std::uint64_t bytes_;
  std::array<VirtualMemory, 8> memory_;
  void commit(std::uint64_t step);
  std::mutex mutex_;
  VirtualMemory touched_memory_;
  std::uint8_t* touched_ = nullptr;  ///< by step, accessed atomically
  std::uint64_t touched_bytes_ = 0;
  VirtualMemory saved_memory_;
  std::uint32_t* saved_ = nullptr;  ///< by page
  std::uint32_t epoch_ = 0;
};

}  // namespace ptxgen::inline v0::emulator
