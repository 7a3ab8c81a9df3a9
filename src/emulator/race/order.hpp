// src/emulator/race/order.hpp - what orders the threads of a block
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

/// Time of a block. It moves on at every release by any of its threads; every access is stamped
/// with the time at which it is made.
using Tick = std::uint32_t;

/// Up to which tick the accesses of a block's threads are ordered before something: for all warps,
/// for whole warps, and for single lanes where these differ.
class Known {
 public:
  /// Those of `lanes` of a warp whose accesses at `tick` are not known.
  [[nodiscard]] std::uint32_t unknown(std::uint32_t warp, std::uint32_t lanes,
                                      Tick tick) const noexcept {
    if (tick <= floor_ || (!base_.empty() && tick <= base_[warp])) return 0;
    for (const Extra& extra : extras_) {
      if (extra.warp == warp && tick <= extra.tick) lanes &= ~extra.lanes;
    }
    return lanes;
  }
  /// Whether anything at `tick` or later, of any thread, is known.
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
  /// `lanes` of a warp up to `tick`; `all` are the lanes that the warp has.
  void add(std::uint32_t warp, std::uint32_t lanes, Tick tick,
           const std::vector<std::uint32_t>& all);
  void join(const Known& other, const std::vector<std::uint32_t>& all);
  /// Whether `join` with the other would change nothing that matters; may miss some that would not.
  [[nodiscard]] bool covers(const Known& other) const noexcept;
  void clear() noexcept;
  /// Time begins anew: `by` ticks are taken off everything.
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

/// What is known of other blocks, by their number. Shared memory has no use for it.
using Foreign = std::map<std::uint32_t, Known>;
using ForeignPointer = std::shared_ptr<const Foreign>;
[[nodiscard]] ForeignPointer join(const ForeignPointer& a, const ForeignPointer& b);

/// What a release wrote into a synchronisation object. An atomic read-modify-write hands on what it
/// found there (`before`), so that a chain of a million blocks costs a node each, not a copy.
struct Release {
  std::shared_ptr<const Release> before;
  std::uint32_t block = 0;
  Known known;
  ForeignPointer foreign;
  ptx::Modifier scope = ptx::Modifier::none;  ///< the narrowest of the pattern
  std::uint32_t statement = kNoIndex;         ///< of that scope
  std::uint32_t thread = 0;
  std::uint64_t cta = 0;
  std::uint32_t depth = 0;  ///< how many there are before it
  Release() = default;
  Release(const Release&) = delete;
  Release& operator=(const Release&) = delete;
  ~Release();
};
using ReleasePointer = std::shared_ptr<const Release>;

/// Happens-before among the threads of one block, by lane where it must be, by warp and by block
/// where it can. `number`: of the block, in what other blocks learn of it.
class ThreadOrder {
 public:
  ThreadOrder(const Cta& cta, std::uint32_t number);

  [[nodiscard]] Tick now() const noexcept { return now_; }
  /// Everything up to it is ordered before everything from now on, in the whole block.
  [[nodiscard]] Tick floor() const noexcept { return floor_; }
  /// The warp's accesses after it have not been released to anybody yet.
  [[nodiscard]] Tick released(std::uint32_t warp) const noexcept { return warps_[warp].released; }
  [[nodiscard]] Tick last_release() const noexcept { return last_release_; }
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  /// The copy engine counts as one more warp with one lane. It is nobody who could know anything.
  [[nodiscard]] std::uint32_t engine() const noexcept {
    return static_cast<std::uint32_t>(warps_.size()) - 1;
  }
  /// Whether all lanes of a warp know the same.
  [[nodiscard]] bool is_whole(std::uint32_t warp) const noexcept {
    return warps_[warp].groups.size() == 1;
  }
  /// Up to which tick all lanes of a warp know each other's accesses.
  [[nodiscard]] Tick together(std::uint32_t warp) const noexcept {
    const Warp& own = warps_[warp];
    const Tick known = own.groups.size() == 1 ? own.groups[0].known.base(warp) : 0;
    return known < floor_ ? floor_ : known;
  }

  /// Those of `lanes` of `warp` before whose next access that of `other_lanes` of `other` at `tick`
  /// is not ordered. A lane is always ordered after itself.
  [[nodiscard]] std::uint32_t unordered(std::uint32_t warp, std::uint32_t lanes,
                                        std::uint32_t other, std::uint32_t other_lanes,
                                        Tick tick) const noexcept;
  /// Which of `other_lanes` those are, for one lane.
  [[nodiscard]] std::uint32_t unordered_with(std::uint32_t warp, std::uint32_t lane,
                                             std::uint32_t other, std::uint32_t other_lanes,
                                             Tick tick) const noexcept;
  /// The same of a thread of another block.
  [[nodiscard]] std::uint32_t unknown_of(std::uint32_t warp, std::uint32_t lane,
                                         std::uint32_t block, std::uint32_t other,
                                         std::uint32_t other_lanes, Tick tick) const noexcept;
  /// Those that no thread of this block knows of.
  [[nodiscard]] std::uint32_t unknown_to_all(std::uint32_t block, std::uint32_t other,
                                             std::uint32_t other_lanes, Tick tick) const noexcept;
  /// All threads of the block know everything of it up to `tick`.
  void raise_floor(Tick tick) noexcept { floor_ = tick > floor_ ? tick : floor_; }
  /// Nothing that was done so far is ordered with anything, and nobody asks: time begins anew.
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
  /// What the lanes know and have done so far, added to `release`.
  void publish(std::uint32_t warp, std::uint32_t lanes, Release& release) const;
  /// To be called after lanes have published: what they do next was not part of it.
  void advance(std::uint32_t warp) noexcept;
  /// What lanes know, without what they have done themselves.
  void snapshot(std::uint32_t warp, std::uint32_t lane, Release& release) const;
  [[nodiscard]] const std::vector<std::uint32_t>& warp_lanes() const noexcept { return lanes_; }
  /// The lanes take over a release and those before it, as far as `reaches` says.
  void learn(std::uint32_t warp, std::uint32_t lanes, const Release& release,
             const std::function<bool(const Release&)>& reaches);
  /// Only before the first access of a new block.
  void restart(const Cta& cta);
  /// The same with another number, as a new object has it: time begins anew.
  void begin(const Cta& cta, std::uint32_t number);
  void rebase(Tick by) noexcept;

 private:
  struct Group {
    std::uint32_t mask = 0;
    Known known;
    ForeignPointer foreign;
  };
  struct Warp {
    Tick released = 0;
    std::vector<Group> groups;  ///< every lane is in one
  };
  struct Barrier {
    std::array<std::uint32_t, 32> waiting{};
    Known arrived;  ///< what those who do not wait knew
    ForeignPointer foreign;
    bool partial = false;
  };
  [[nodiscard]] const Group& group(std::uint32_t warp, std::uint32_t lane) const noexcept;
  /// Makes a group of exactly these lanes, with the joint knowledge of the groups they were in.
  Group& gather(std::uint32_t warp, std::uint32_t lanes);
  /// Makes groups that lie wholly in `lanes` or wholly outside.
  void part(std::uint32_t warp, std::uint32_t lanes);
  void merge(std::uint32_t warp);
  void complete_for_all(Barrier& barrier);

  std::uint32_t number_;
  Tick now_ = 1;
  Tick floor_ = 0;
  Tick last_release_ = 0;
  std::vector<std::uint32_t> lanes_;  ///< that each warp has, the copy engine behind them
  std::vector<Warp> warps_;           ///< as `lanes_`
  std::array<std::unique_ptr<Barrier>, 16> barriers_;
};

}  // namespace ptxgen::inline v0::emulator
