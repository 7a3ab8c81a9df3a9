// src/emulator/race/sync.hpp - release and acquire through memory
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "emulator/race/detail.hpp"

namespace ptxgen::inline v0::emulator {

/// Fences and relaxed reads of the lanes of a warp.
struct LaneSync {
  struct Fence {
    Tick tick = 0;                           ///< of the fence
    std::shared_ptr<const Release> release;  ///< the clock then; null: no fence yet
    ptx::Modifier scope = ptx::Modifier::none;
    std::uint32_t statement = kNoIndex;
  };
  struct Seen {
    std::uint64_t object = 0;
    ReleasePointer release;
    ptx::Modifier scope = ptx::Modifier::none;
    std::uint32_t statement = kNoIndex;
  };
  std::array<Fence, kLanes> fence;
  std::array<std::vector<Seen>, kLanes> seen;
};

/// Release and acquire through memory, by address, for the shared memory of a block or the global
/// memory of a launch; and through named objects.
class SyncObjects {
 public:
  struct Party {
    Context* context = nullptr;
    std::uint32_t statement = kNoIndex;
    ThreadOrder* order = nullptr;
    std::unique_ptr<LaneSync>* lanes = nullptr;  ///< of the warp
    [[nodiscard]] std::uint32_t warp() const noexcept { return context->warp->index; }
  };
  /// Whether a release synchronises with an acquire of some scope. If not, it is recorded as a
  /// possible cause of a race.
  using Reaches = std::function<bool(const Party& party, std::uint32_t lane, const Release& release,
                                     ptx::Modifier scope, std::uint32_t statement)>;
  explicit SyncObjects(Reaches reaches) : reaches_(std::move(reaches)) {}

  /// A strong access: acquires what it reads and releases what it writes. `tag` distinguishes
  /// addresses of different memories.
  void strong_access(const Party& party, const RaceAccess& access, std::uint64_t tag);
  void fence(const Party& party, std::uint32_t lanes, ptx::Modifier order, ptx::Modifier scope);
  /// Acquires the releases that relaxed reads have read.
  void take_effect(const Party& party, std::uint32_t lanes, ptx::Modifier scope);
  void release(const Party& party, std::uint32_t lanes, std::uint64_t object);
  void acquire(const Party& party, std::uint32_t lanes, std::uint64_t object);
  /// Releases only accesses of lanes at `tick` to a named object.
  void release_access(const ThreadOrder& order, std::uint32_t warp, std::uint32_t lanes, Tick tick,
                      std::uint64_t object);
  /// Clears a named object.
  void forget(std::uint64_t object) { named_.erase(object); }
  void clear();
  /// Subtracts from all ticks; `warps`: all warps.
  void rebase(Tick by, std::vector<std::unique_ptr<LaneSync>>& warps);
  [[nodiscard]] std::uint64_t bytes() const noexcept;

 private:
  /// Which releases synchronise with an acquire by `lanes`; only while `party` exists.
  [[nodiscard]] ThreadOrder::Reaches reaches_lanes(const Party& party, std::uint32_t lanes,
                                                   ptx::Modifier scope,
                                                   std::uint32_t statement) const;
  void leave(const Party& party, const RaceAccess& access, std::uint32_t lane, std::uint64_t key);

  Reaches reaches_;
  std::unordered_map<std::uint64_t, ReleasePointer> objects_;          ///< by address
  std::unordered_map<std::uint64_t, std::shared_ptr<Release>> named_;  ///< release(), acquire()
};

/// The narrower of two scopes; none counts as gpu.
[[nodiscard]] ptx::Modifier narrower(ptx::Modifier a, ptx::Modifier b) noexcept;

}  // namespace ptxgen::inline v0::emulator
