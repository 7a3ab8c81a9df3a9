// src/emulator/race/order.hpp - vector clocks of the threads of a block
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "emulator/state/machine.hpp"

namespace ptxgen::inline v0::emulator {

/// Time of a block. It advances at every release of its threads; each access has the time at which
/// it was made.
using Tick = std::uint32_t;

/// A vector clock: the ticks up to which accesses of a block's threads are ordered before an event,
/// for all warps, for whole warps, and for single lanes where these differ.
class Known {
 public:
  /// The lanes of a warp whose accesses at `tick` are not known.
  [[nodiscard]] std::uint32_t unknown(std::uint32_t warp, std::uint32_t lanes,
                                      Tick tick) const noexcept {
    if (tick <= floor_ || (!base_.empty() && tick <= base_[warp])) return 0;
    for (const Extra& extra : extras_) {
      if (extra.warp == warp && tick <= extra.tick) lanes &= ~extra.lanes;
    }
    return lanes;
  }
  /// Whether any thread is known up to `tick` or later.
  [[nodiscard]] bool knows_anything_at(Tick tick) const noexcept;
  /// How many whole warps are known up to `tick`; extras count as a warp each.
  [[nodiscard]] std::uint32_t warps_known_at(Tick tick) const noexcept;
  [[nodiscard]] Tick base(std::uint32_t warp) const noexcept {
    return base_.empty() || base_[warp] < floor_ ? floor_ : base_[warp];
  }
  [[nodiscard]] bool empty() const noexcept {
    return floor_ == 0 && base_.empty() && extras_.empty();
  }

  void raise_floor(Tick tick) noexcept { floor_ = tick > floor_ ? tick : floor_; }
  /// Adds `lanes` of a warp up to `tick`; `all`: the existing lanes of each warp.
  void add(std::uint32_t warp, std::uint32_t lanes, Tick tick,
           const std::vector<std::uint32_t>& all);
  void join(const Known& other, const std::vector<std::uint32_t>& all);
  /// Whether `join` with the other changes nothing; may return false although it does not.
  [[nodiscard]] bool covers(const Known& other) const noexcept;
  void clear() noexcept;
  /// Subtracts `by` from all ticks.
  void rebase(Tick by) noexcept;
  friend bool operator==(const Known&, const Known&) = default;

 private:
  struct Extra {
    std::uint32_t warp = 0;
    std::uint32_t lanes = 0;
    Tick tick = 0;
    friend bool operator==(const Extra&, const Extra&) = default;
  };
  Tick floor_ = 0;
  std::vector<Tick> base_;  ///< by warp, or empty
  std::vector<Extra> extras_;
};

/// Vector clocks of other blocks, by their number; not used for shared memory.
using Foreign = std::map<std::uint32_t, Known>;
using ForeignPointer = std::shared_ptr<const Foreign>;
[[nodiscard]] ForeignPointer join(const ForeignPointer& a, const ForeignPointer& b);

/// A release stored in a synchronisation object. An atomic read-modify-write keeps the release that
/// it read (`before`): a chain of a million blocks costs a node for each, not a copy.
struct Release {
  std::shared_ptr<const Release> before;
  std::uint32_t block = 0;
  Known known;
  ForeignPointer foreign;
  ptx::Modifier scope = ptx::Modifier::none;  ///< the narrowest of the pattern
  std::uint32_t statement = kNoIndex;         ///< of that scope
  std::uint32_t thread = 0;
  std::uint64_t cta = 0;
  std::uint32_t depth = 0;  ///< length of the chain before it
  Release() = default;
  Release(const Release&) = delete;
  Release& operator=(const Release&) = delete;
  ~Release();
};
using ReleasePointer = std::shared_ptr<const Release>;

/// Happens-before of the threads of one block: by lane where necessary, by warp and by block where
/// possible. `number`: of the block, in the clocks of other blocks.
class ThreadOrder {
 public:
  ThreadOrder(const Cta& cta, std::uint32_t number);

  [[nodiscard]] Tick now() const noexcept { return now_; }
  /// Accesses of the whole block up to this tick are ordered before all later ones.
  [[nodiscard]] Tick floor() const noexcept { return floor_; }
  /// The warp's accesses after this tick are not released yet.
  [[nodiscard]] Tick released(std::uint32_t warp) const noexcept { return warps_[warp].released; }
  [[nodiscard]] Tick last_release() const noexcept { return last_release_; }
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  /// The copy engine counts as one more warp with one lane, without a clock of its own.
  [[nodiscard]] std::uint32_t engine() const noexcept {
    return static_cast<std::uint32_t>(warps_.size()) - 1;
  }
  /// Whether all lanes of a warp have the same clock.
  [[nodiscard]] bool is_whole(std::uint32_t warp) const noexcept {
    return warps_[warp].groups.size() == 1;
  }
  /// The tick up to which all lanes of a warp are ordered with each other.
  [[nodiscard]] Tick together(std::uint32_t warp) const noexcept {
    const Warp& own = warps_[warp];
    const Tick known = own.groups.size() == 1 ? own.groups[0].known.base(warp) : 0;
    return known < floor_ ? floor_ : known;
  }

  /// Whether no thread is ordered after accesses of another warp later than `floor()`: so far only
  /// barriers of the whole block have joined warps.
  [[nodiscard]] bool warps_apart() const noexcept { return apart_; }

  /// The lanes of `warp` whose next access is not ordered after the access of `other_lanes` of
  /// `other` at `tick`. A lane is always ordered after itself.
  [[nodiscard]] std::uint32_t unordered(std::uint32_t warp, std::uint32_t lanes,
                                        std::uint32_t other, std::uint32_t other_lanes,
                                        Tick tick) const noexcept;
  /// For one lane: the unordered lanes of `other_lanes`.
  [[nodiscard]] std::uint32_t unordered_with(std::uint32_t warp, std::uint32_t lane,
                                             std::uint32_t other, std::uint32_t other_lanes,
                                             Tick tick) const noexcept;
  /// The same of a thread of another block.
  [[nodiscard]] std::uint32_t unknown_of(std::uint32_t warp, std::uint32_t lane,
                                         std::uint32_t block, std::uint32_t other,
                                         std::uint32_t other_lanes, Tick tick) const noexcept;
  /// The lanes that no thread of this block is ordered after.
  [[nodiscard]] std::uint32_t unknown_to_all(std::uint32_t block, std::uint32_t other,
                                             std::uint32_t other_lanes, Tick tick) const noexcept;
  /// Orders all accesses of the block up to `tick` before its later ones.
  void raise_floor(Tick tick) noexcept { floor_ = tick > floor_ ? tick : floor_; }
  /// Restarts time: accesses so far are no longer checked.
  void forget() noexcept;
  [[nodiscard]] const Known& known(std::uint32_t warp, std::uint32_t lane) const noexcept {
    return group(warp, lane).known;
  }
  [[nodiscard]] const ForeignPointer& foreign(std::uint32_t warp,
                                              std::uint32_t lane) const noexcept {
    return group(warp, lane).foreign;
  }

  void barrier_arrive(std::uint32_t warp, std::uint32_t id, std::uint32_t lanes, bool wait);
  void barrier_complete(const Cta& cta, std::uint32_t id);
  void warp_sync(std::uint32_t warp, std::uint32_t lanes, std::uint32_t exited);
  /// Adds the clocks and accesses of the lanes to `release`.
  void publish(std::uint32_t warp, std::uint32_t lanes, Release& release) const;
  /// Call after `publish`: later accesses are not part of the release.
  void advance(std::uint32_t warp) noexcept;
  /// The clock of a lane, without its own accesses.
  void snapshot(std::uint32_t warp, std::uint32_t lane, Release& release) const;
  [[nodiscard]] const std::vector<std::uint32_t>& warp_lanes() const noexcept { return lanes_; }
  /// Whether a release synchronises with the acquire in question.
  using Reaches = std::function<bool(const Release&)>;
  /// Joins a release, and those before it, into the clocks of the lanes if `reaches` is true for
  /// it.
  void learn(std::uint32_t warp, std::uint32_t lanes, const Release& release,
             const Reaches& reaches);
  /// The same of a release that does not change any more: what the lanes have learned of it in
  /// `scope` before is not joined again.
  void learn(std::uint32_t warp, std::uint32_t lanes, const ReleasePointer& release,
             ptx::Modifier scope, const Reaches& reaches);
  /// Only before the first access of a new block.
  void restart(const Cta& cta);
  /// The same with another number; restarts time.
  void begin(const Cta& cta, std::uint32_t number);
  void rebase(Tick by) noexcept;

 private:
  struct Group {
    std::uint32_t mask = 0xffffffffu;
    Known known;
    ForeignPointer foreign;
    ReleasePointer learned;  ///< the last release of which these clocks have all, in scope
    ptx::Modifier scope = ptx::Modifier::none;
  };
  /// What a chain of releases adds to clocks.
  struct News {
    Known own;
    std::shared_ptr<Foreign> foreign;
    bool complete = true;  ///< every release reaches
  };
  struct Warp {
    Tick released = 0;
    std::vector<Group> groups;  ///< a partition of the lanes
  };
  struct Barrier {
    std::array<std::uint32_t, 32> waiting{};
    Known arrived;  ///< clocks of the threads that only arrive
    ForeignPointer foreign;
    bool partial = false;
  };
  [[nodiscard]] const Group& group(std::uint32_t warp, std::uint32_t lane) const noexcept;
  /// Makes a group of exactly these lanes, with the joined clocks of their groups.
  Group& gather(std::uint32_t warp, std::uint32_t lanes);
  /// Splits groups at the boundary of `lanes`.
  void part(std::uint32_t warp, std::uint32_t lanes);
  void merge(std::uint32_t warp);
  /// Of `release` and those before it, as far as `end`, which is not included.
  [[nodiscard]] News news_of(const Release& release, const Release* end,
                             const Reaches& reaches) const;
  void add_news(Group& group, const News& news) const;
  void complete_for_all(Barrier& barrier);

  std::uint32_t number_;
  Tick now_ = 1;
  Tick floor_ = 0;
  Tick last_release_ = 0;
  bool apart_ = true;                 ///< see `warps_apart`
  std::vector<std::uint32_t> lanes_;  ///< existing lanes of each warp, then the copy engine
  std::vector<Warp> warps_;           ///< as `lanes_`
  std::array<std::unique_ptr<Barrier>, 16> barriers_;
};

}  // namespace ptxgen::inline v0::emulator
