// src/emulator/state/race_shadow.hpp - who touched which bytes of device memory last
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

/// What is remembered of each 4-byte granule of device memory: 16 bytes, committed when touched,
/// never cleared; and of each line of 32 granules, 16 more, so that what a warp reads or writes as
/// a whole line costs one look and not 32. Ids grow from launch to launch; what is older than a
/// launch's first one was before it.
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
  /// To be called before granules are touched. From any thread.
  void touch(std::uint64_t granule, std::uint64_t count) {
    for (std::uint64_t at = granule / kStep; at <= (granule + count - 1) / kStep; ++at) {
      if (__atomic_load_n(&touched_[at], __ATOMIC_ACQUIRE) == 0) commit(at);
    }
  }
  std::uint32_t* written = nullptr;     ///< id of the last write
  std::uint32_t* write_info = nullptr;  ///< see GlobalRaces
  std::uint32_t* read = nullptr;        ///< id of the first of the last reads
  std::uint32_t* read_info = nullptr;
  /// By line: what holds for all its granules, whatever theirs say; or that theirs are valid; or,
  /// if the id is old, that nothing of it was touched in this launch.
  std::uint32_t* line_written = nullptr;
  std::uint32_t* line_write_info = nullptr;
  std::uint32_t* line_read = nullptr;
  std::uint32_t* line_read_info = nullptr;
  std::atomic<std::uint32_t> next_id{1};
  /// Memory for copies, kept from launch to launch: a system takes longer to give it than a copy.
  std::vector<std::unique_ptr<std::byte[]>> spare;
  /// Forgets everything; when ids run out.
  void reset();
  [[nodiscard]] std::uint64_t bytes() const noexcept { return touched_bytes_; }

  static constexpr std::uint64_t kLineGranules = 32;
  /// Of device memory, for copies of what a launch changes: the launch, by its epoch, that has
  /// copied a page last.
  static constexpr std::uint64_t kPageBytes = 4096;
  [[nodiscard]] std::uint32_t next_epoch();
  [[nodiscard]] std::uint32_t saved(std::uint64_t page) const noexcept { return saved_[page]; }
  void set_saved(std::uint64_t page, std::uint32_t epoch) noexcept { saved_[page] = epoch; }

 private:
  static constexpr std::uint64_t kStep = 16384;  ///< granules that are touched at once
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
