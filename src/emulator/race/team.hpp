// src/emulator/race/team.hpp - shared state of a launch's global race checks
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "emulator/race/detail.hpp"
#include "emulator/state/address_space.hpp"
#include "emulator/state/race_shadow.hpp"

namespace ptxgen::inline v0::emulator {

/// Copies of the pages that a launch writes, from before the launch.
class RaceUndo {
 public:
  RaceUndo(AddressSpace& space, GlobalShadow& shadow);
  RaceUndo(const RaceUndo&) = delete;
  RaceUndo& operator=(const RaceUndo&) = delete;
  ~RaceUndo();
  /// Call before bytes are written, with the lock of their pages.
  void before_write(std::uint64_t address, std::uint64_t bytes);
  /// Restores memory. No worker may run.
  void restore() noexcept;

 private:
  static constexpr std::uint64_t kPage = GlobalShadow::kPageBytes;
  static constexpr std::size_t kChunkPages = 64;
  static constexpr std::size_t kSpareChunks = 256;  ///< 64 MiB
  struct Saved {
    std::uint64_t page = 0;
    std::byte* data = nullptr;                        ///< null: all zero, no byte written
    std::array<std::uint64_t, kPage / 64> written{};  ///< a bit for each byte
  };
  void save(std::uint64_t page);
  [[nodiscard]] std::byte* place();

  AddressSpace& space_;
  GlobalShadow& shadow_;
  std::uint32_t epoch_;
  std::mutex mutex_;
  std::deque<Saved> saved_;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::size_t used_ = kChunkPages;  ///< pages of the last chunk
};

/// The shadow, ids, locks and lists of one launch. One worker alone takes no locks.
class RaceTeam {
 public:
  /// A write in a list.
  struct Entry {
    std::uint32_t era = 0;
    std::uint32_t lanes = 0;
    std::uint32_t statement = kNoIndex;
    std::uint8_t warp = 0;
    std::uint8_t bytes = 0;
    std::uint8_t unit = 0;
    bool strong = false;
  };
  using Lists = std::unordered_map<std::uint64_t, std::vector<Entry>>;  ///< by granule
  static constexpr std::uint32_t kIds = 1024;  ///< taken by a worker at once

  RaceTeam(std::shared_ptr<GlobalShadow> shadow, AddressSpace* space, RacePlan plan);
  RaceTeam(const RaceTeam&) = delete;
  RaceTeam& operator=(const RaceTeam&) = delete;

  [[nodiscard]] GlobalShadow& shadow() const noexcept { return *shadow_; }
  [[nodiscard]] std::uint32_t first_id() const noexcept { return first_id_; }
  [[nodiscard]] bool parallel() const noexcept { return plan_.workers > 1; }
  /// Takes `kIds` ids; returns the first.
  [[nodiscard]] std::uint32_t take_ids() noexcept { return shadow_->next_id.fetch_add(kIds); }
  [[nodiscard]] bool watches(std::uint64_t address) const noexcept;
  [[nodiscard]] Lists& lists(std::uint64_t granule) noexcept {
    return lists_[parallel() ? stripe(granule) : 0];
  }
  /// Call before a write, with the lock of its pages.
  void before_write(std::uint64_t address, std::uint64_t bytes) {
    if (undo_) undo_->before_write(address, bytes);
  }
  void undo() noexcept {
    if (undo_) undo_->restore();
  }
  [[nodiscard]] std::uint64_t list_bytes() const noexcept;

  /// Locks the pages of some granules, at most two.
  class Hold {
   public:
    Hold(RaceTeam& team, std::uint64_t first, std::uint64_t last) noexcept {
      if (!team.parallel()) return;
      std::size_t a = stripe(first);
      std::size_t b = stripe(last);
      if (a > b) std::swap(a, b);
      low_ = &team.locks_[a].taken;
      take(*low_);
      if (a == b) return;
      high_ = &team.locks_[b].taken;
      take(*high_);
    }
    ~Hold() {
      if (high_ != nullptr) high_->store(false, std::memory_order_release);
      if (low_ != nullptr) low_->store(false, std::memory_order_release);
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    static void take(std::atomic<bool>& lock) noexcept;
    std::atomic<bool>* low_ = nullptr;
    std::atomic<bool>* high_ = nullptr;
  };

 private:
  static constexpr std::size_t kStripes = 256;
  struct alignas(64) Lock {
    std::atomic<bool> taken{false};
  };
  [[nodiscard]] static constexpr std::size_t stripe(std::uint64_t granule) noexcept {
    return granule / (GlobalShadow::kPageBytes / 4) % kStripes;
  }

  std::shared_ptr<GlobalShadow> shadow_;
  RacePlan plan_;
  std::uint32_t first_id_;
  std::vector<Lists> lists_;  ///< by stripe, or one
  std::unique_ptr<std::array<Lock, kStripes>> owned_locks_;
  Lock* locks_ = nullptr;
  std::unique_ptr<RaceUndo> undo_;
};

}  // namespace ptxgen::inline v0::emulator
