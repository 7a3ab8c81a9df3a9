// src/emulator/race/order.cpp - vector clocks of the threads of a block
#include "emulator/race/order.hpp"

#include <algorithm>

namespace ptxgen::inline v0::emulator {

bool Known::knows_anything_at(Tick tick) const noexcept { return warps_known_at(tick) != 0; }

std::uint32_t Known::warps_known_at(Tick tick) const noexcept {
  if (tick <= floor_) return 32;
  std::uint32_t count = 0;
  for (const Tick base : base_) count += base >= tick ? 1u : 0u;
  for (const Extra& extra : extras_) count += extra.tick >= tick ? 1u : 0u;
  return count;
}

void Known::add(std::uint32_t warp, std::uint32_t lanes, Tick tick,
                const std::vector<std::uint32_t>& all) {
  if (tick <= floor_ || (!base_.empty() && tick <= base_[warp])) return;
  if (lanes != all[warp]) {
    std::uint32_t covered = lanes;
    Tick min_tick = tick;
    for (Extra& extra : extras_) {
      if (extra.warp != warp) continue;
      if (extra.tick >= tick) {
        lanes &= ~extra.lanes;
      } else {
        extra.lanes &= ~lanes;
      }
    }
    if (lanes == 0) return;
    bool merged = false;
    for (Extra& extra : extras_) {
      if (extra.warp != warp || extra.lanes == 0) continue;
      if (extra.tick == tick && !merged) {
        extra.lanes |= lanes;
        merged = true;
      }
      covered |= extra.lanes;
      min_tick = std::min(min_tick, extra.tick);
    }
    if (!merged) extras_.push_back({warp, lanes, tick});
    if (covered != all[warp]) {
      std::erase_if(extras_, [](const Extra& extra) { return extra.lanes == 0; });
      return;
    }
    tick = min_tick;
  }
  // The whole warp is known up to `tick`.
  if (base_.empty()) base_.assign(all.size(), floor_);
  base_[warp] = std::max(base_[warp], tick);
  std::erase_if(extras_, [&](const Extra& extra) {
    return extra.lanes == 0 || (extra.warp == warp && extra.tick <= base_[warp]);
  });
}

void Known::join(const Known& other, const std::vector<std::uint32_t>& all) {
  raise_floor(other.floor_);
  if (!other.base_.empty()) {
    if (base_.size() < other.base_.size()) base_.resize(other.base_.size(), 0);
    for (std::size_t i = 0; i < other.base_.size(); ++i) {
      base_[i] = std::max(base_[i], other.base_[i]);
    }
  }
  for (const Extra& extra : other.extras_) add(extra.warp, extra.lanes, extra.tick, all);
  std::erase_if(extras_, [&](const Extra& extra) {
    return extra.tick <= floor_ || (!base_.empty() && extra.tick <= base_[extra.warp]);
  });
}

bool Known::covers(const Known& other) const noexcept {
  if (floor_ < other.floor_) return false;
  for (std::uint32_t warp = 0; warp < other.base_.size(); ++warp) {
    if (base(warp) < other.base_[warp]) return false;
  }
  // Earlier joins have the same order: the next entry is often right after the last.
  std::size_t next = 0;
  for (const Extra& extra : other.extras_) {
    if (extra.tick <= base(extra.warp)) continue;
    std::uint32_t missing = extra.lanes;
    for (std::size_t i = 0; i < extras_.size() && missing != 0; ++i, ++next) {
      if (next >= extras_.size()) next = 0;
      const Extra& own = extras_[next];
      if (own.warp == extra.warp && own.tick >= extra.tick) missing &= ~own.lanes;
    }
    if (missing != 0) return false;
  }
  return true;
}

void Known::clear() noexcept {
  floor_ = 0;
  base_.clear();
  extras_.clear();
}

void Known::rebase(Tick by) noexcept {
  const auto shift = [by](Tick& tick) { tick = tick > by ? tick - by : 0; };
  shift(floor_);
  for (Tick& base : base_) shift(base);
  for (Extra& extra : extras_) shift(extra.tick);
  std::erase_if(extras_, [](const Extra& extra) { return extra.tick == 0; });
}

namespace {

/// `Known::add` treats all lanes of warps of other blocks as existing: blocks of a launch have as
/// many warps, and a partial last warp stays an extra.
const std::vector<std::uint32_t>& whole_warps() {
  static const std::vector<std::uint32_t> all(33, 0xffffffffu);  // with the copy engine
  return all;
}

}  // namespace

ForeignPointer join(const ForeignPointer& a, const ForeignPointer& b) {
  if (a == b || !b) return a;
  if (!a) return b;
  auto both = std::make_shared<Foreign>(*a);
  for (const auto& [block, known] : *b) (*both)[block].join(known, whole_warps());
  return both;
}

Release::~Release() {
  // Not recursive: a chain may have as many nodes as the launch has blocks.
  std::shared_ptr<const Release> next = std::move(before);
  while (next && next.use_count() == 1) {
    std::shared_ptr<const Release> after = std::move(const_cast<Release&>(*next).before);
    next = std::move(after);
  }
}

ThreadOrder::ThreadOrder(const Cta& cta, std::uint32_t number) : number_(number) { restart(cta); }

void ThreadOrder::restart(const Cta& cta) {
  floor_ = last_release_ = now_;
  ++now_;
  apart_ = true;
  lanes_.clear();
  warps_.resize(cta.warps.size() + 1);
  for (std::size_t i = 0; i < warps_.size(); ++i) {
    lanes_.push_back(i < cta.warps.size() ? cta.warps[i].lanes : 1u);
    warps_[i].released = floor_;
    warps_[i].groups.resize(1);
    warps_[i].groups[0] = Group();
  }
  for (auto& barrier : barriers_) barrier.reset();
}

const ThreadOrder::Group& ThreadOrder::group(std::uint32_t warp,
                                             std::uint32_t lane) const noexcept {
  const std::vector<Group>& groups = warps_[warp].groups;
  for (const Group& at : groups) {
    if ((at.mask >> lane & 1u) != 0) return at;
  }
  return groups[0];
}

void ThreadOrder::begin(const Cta& cta, std::uint32_t number) {
  number_ = number;
  now_ = 1;
  restart(cta);
}

std::uint32_t ThreadOrder::unordered(std::uint32_t warp, std::uint32_t lanes, std::uint32_t other,
                                     std::uint32_t other_lanes, Tick tick) const noexcept {
  if (tick <= floor_) return 0;
  std::uint32_t result = 0;
  for (const Group& at : warps_[warp].groups) {
    const std::uint32_t own = at.mask & lanes;
    if (own == 0) continue;
    const std::uint32_t unknown = at.known.unknown(other, other_lanes, tick);
    if (unknown == 0) continue;
    // A lane is ordered after itself.
    const bool alone = other == warp && (unknown & (unknown - 1)) == 0;
    result |= alone ? own & ~unknown : own;
  }
  return result;
}

std::uint32_t ThreadOrder::unordered_with(std::uint32_t warp, std::uint32_t lane,
                                          std::uint32_t other, std::uint32_t other_lanes,
                                          Tick tick) const noexcept {
  if (tick <= floor_) return 0;
  const std::uint32_t unknown = group(warp, lane).known.unknown(other, other_lanes, tick);
  return other == warp ? unknown & ~(1u << lane) : unknown;
}

std::uint32_t ThreadOrder::unknown_of(std::uint32_t warp, std::uint32_t lane, std::uint32_t block,
                                      std::uint32_t other, std::uint32_t other_lanes,
                                      Tick tick) const noexcept {
  const ForeignPointer& foreign = group(warp, lane).foreign;
  if (!foreign) return other_lanes;
  const auto found = foreign->find(block);
  return found == foreign->end() ? other_lanes : found->second.unknown(other, other_lanes, tick);
}

std::uint32_t ThreadOrder::unknown_to_all(std::uint32_t block, std::uint32_t other,
                                          std::uint32_t other_lanes, Tick tick) const noexcept {
  for (const Warp& warp : warps_) {
    for (const Group& at : warp.groups) {
      if (!at.foreign || other_lanes == 0) continue;
      const auto found = at.foreign->find(block);
      if (found != at.foreign->end()) {
        other_lanes = found->second.unknown(other, other_lanes, tick);
      }
    }
  }
  return other_lanes;
}

void ThreadOrder::forget() noexcept {
  now_ = 1;
  floor_ = last_release_ = 0;
  for (Warp& warp : warps_) {
    warp.released = 0;
    warp.groups.resize(1);
    warp.groups[0] = Group();
  }
  for (auto& barrier : barriers_) {
    if (!barrier) continue;
    barrier->arrived.clear();
    barrier->foreign = nullptr;
  }
}

void ThreadOrder::part(std::uint32_t warp, std::uint32_t lanes) {
  std::vector<Group>& groups = warps_[warp].groups;
  const std::size_t count = groups.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t inside = groups[i].mask & lanes;
    if (inside == 0 || inside == groups[i].mask) continue;
    Group other = groups[i];
    other.mask = inside;
    groups[i].mask &= ~lanes;
    groups.push_back(std::move(other));
  }
}

ThreadOrder::Group& ThreadOrder::gather(std::uint32_t warp, std::uint32_t lanes) {
  part(warp, lanes);
  std::vector<Group>& groups = warps_[warp].groups;
  std::size_t first = groups.size();
  for (std::size_t i = 0; i < groups.size();) {
    if ((groups[i].mask & lanes) == 0) {
      ++i;
    } else if (first == groups.size()) {
      first = i++;
    } else {
      groups[first].mask |= groups[i].mask;
      groups[first].known.join(groups[i].known, lanes_);
      groups[first].foreign = join(groups[first].foreign, groups[i].foreign);
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return groups[first];
}

void ThreadOrder::merge(std::uint32_t warp) {
  std::vector<Group>& groups = warps_[warp].groups;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t k = groups.size() - 1; k > i; --k) {
      if (groups[i].foreign != groups[k].foreign || groups[i].known != groups[k].known) continue;
      groups[i].mask |= groups[k].mask;
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
}

void ThreadOrder::advance(std::uint32_t warp) noexcept {
  warps_[warp].released = last_release_ = now_;
  ++now_;
}

void ThreadOrder::warp_sync(std::uint32_t warp, std::uint32_t lanes, std::uint32_t exited) {
  lanes &= lanes_[warp];
  if (lanes == 0) return;
  // Exited lanes make no more accesses: they complete the warp.
  if ((lanes | exited) == lanes_[warp]) lanes = lanes_[warp];
  Group& together = gather(warp, lanes | (lanes == lanes_[warp] ? ~lanes_[warp] : 0u));
  together.known.add(warp, lanes, now_, lanes_);
  advance(warp);
  if (warps_[warp].groups.size() > 1) merge(warp);
}

void ThreadOrder::publish(std::uint32_t warp, std::uint32_t lanes, Release& release) const {
  release.block = number_;
  release.known.raise_floor(floor_);
  for (const Group& at : warps_[warp].groups) {
    if ((at.mask & lanes) == 0) continue;
    release.known.join(at.known, lanes_);
    release.foreign = join(release.foreign, at.foreign);
  }
  release.known.add(warp, lanes, now_, lanes_);
}

void ThreadOrder::snapshot(std::uint32_t warp, std::uint32_t lane, Release& release) const {
  const Group& at = group(warp, lane);
  release.block = number_;
  release.known = at.known;
  release.known.raise_floor(floor_);
  release.foreign = at.foreign;
}

ThreadOrder::News ThreadOrder::news_of(const Release& release, const Release* end,
                                       const Reaches& reaches) const {
  News news;
  const auto add = [&](std::uint32_t block, const Known& known) {
    if (block == number_) return news.own.join(known, lanes_);
    if (!news.foreign) news.foreign = std::make_shared<Foreign>();
    (*news.foreign)[block].join(known, whole_warps());
  };
  for (const Release* at = &release; at != nullptr && at != end; at = at->before.get()) {
    if (!reaches(*at)) {
      news.complete = false;
      continue;
    }
    add(at->block, at->known);
    if (!at->foreign) continue;
    for (const auto& [block, known] : *at->foreign) add(block, known);
  }
  return news;
}

void ThreadOrder::add_news(Group& group, const News& news) const {
  group.known.join(news.own, lanes_);
  if (news.foreign) group.foreign = join(group.foreign, ForeignPointer(news.foreign));
}

void ThreadOrder::learn(std::uint32_t warp, std::uint32_t lanes, const Release& release,
                        const Reaches& reaches) {
  // Polling threads acquire the same release repeatedly.
  if (release.block == number_ && release.before == nullptr && release.foreign == nullptr &&
      std::ranges::all_of(warps_[warp].groups, [&](const Group& at) {
        return (at.mask & lanes) == 0 || at.known.covers(release.known);
      })) {
    return;
  }
  apart_ = false;
  part(warp, lanes);
  const News news = news_of(release, nullptr, reaches);
  for (Group& at : warps_[warp].groups) {
    if ((at.mask & lanes) != 0) add_news(at, news);
  }
  merge(warp);
}

void ThreadOrder::learn(std::uint32_t warp, std::uint32_t lanes, const ReleasePointer& release,
                        ptx::Modifier scope, const Reaches& reaches) {
  // Threads that poll a counter acquire the same chain of releases again, and others on top of it.
  const auto has_learned = [&](const Group& at) {
    return (at.mask & lanes) == 0 || (at.learned == release && at.scope == scope);
  };
  if (std::ranges::all_of(warps_[warp].groups, has_learned)) return;
  apart_ = false;
  part(warp, lanes);
  for (Group& at : warps_[warp].groups) {
    if (has_learned(at)) continue;
    const News news = news_of(*release, at.scope == scope ? at.learned.get() : nullptr, reaches);
    add_news(at, news);
    at.learned = news.complete ? release : nullptr;
    at.scope = scope;
  }
  merge(warp);
}

void ThreadOrder::barrier_arrive(std::uint32_t warp, std::uint32_t id, std::uint32_t lanes,
                                 bool wait) {
  auto& slot = barriers_[id & 15u];
  if (!slot) slot = std::make_unique<Barrier>();
  if (wait) {
    // Their clocks cannot change while they wait: read them at completion.
    slot->waiting[warp] |= lanes;
    return;
  }
  Release release;
  publish(warp, lanes & lanes_[warp], release);
  slot->arrived.join(release.known, lanes_);
  slot->foreign = join(slot->foreign, release.foreign);
  slot->partial = true;
  advance(warp);
}

void ThreadOrder::complete_for_all(Barrier& barrier) {
  ForeignPointer foreign;
  for (const Warp& warp : warps_) {
    for (const Group& at : warp.groups) foreign = join(foreign, at.foreign);
  }
  floor_ = last_release_ = now_;
  ++now_;
  apart_ = true;
  for (Warp& warp : warps_) {
    warp.released = floor_;
    warp.groups.resize(1);
    warp.groups[0].mask = 0xffffffffu;
    warp.groups[0].known.clear();
    warp.groups[0].foreign = foreign;
  }
  barrier.waiting.fill(0);
}

void ThreadOrder::barrier_complete(const Cta& cta, std::uint32_t id) {
  auto& slot = barriers_[id & 15u];
  if (!slot) return;
  // Exited threads count as arrived: those of a warp of which other lanes wait, and, if the barrier
  // is for the whole block, all.
  const bool whole_block = cta.barriers[id & 15u].all;
  const auto gone = [&](std::size_t i) {
    return whole_block || slot->waiting[i] != 0 ? cta.warps[i].exited : 0u;
  };
  bool all = !slot->partial;
  const std::size_t count = cta.warps.size();
  for (std::size_t i = 0; i < count && all; ++i) {
    all = (slot->waiting[i] | gone(i)) == lanes_[i];
  }
  if (all) return complete_for_all(*slot);
  apart_ = false;

  std::array<std::uint32_t, 32> left{};
  for (std::size_t i = 0; i < count; ++i) left[i] = gone(i);
  const std::unique_ptr<Barrier> barrier = std::move(slot);
  Release together;
  together.known = std::move(barrier->arrived);
  together.foreign = std::move(barrier->foreign);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t come = (barrier->waiting[i] | left[i]) & lanes_[i];
    if (come != 0) publish(i, come, together);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t lanes = barrier->waiting[i];
    if (lanes == 0) continue;
    Group& at = gather(i, lanes == lanes_[i] ? 0xffffffffu : lanes);
    at.known = together.known;
    at.foreign = together.foreign;
    warps_[i].released = now_;
    if (warps_[i].groups.size() > 1) merge(i);
  }
  last_release_ = now_;
  ++now_;
}

void ThreadOrder::rebase(Tick by) noexcept {
  const auto shift = [by](Tick& tick) { tick = tick > by ? tick - by : 0; };
  shift(now_);
  shift(floor_);
  shift(last_release_);
  for (Warp& warp : warps_) {
    shift(warp.released);
    for (Group& at : warp.groups) at.known.rebase(by);
  }
  for (auto& barrier : barriers_) {
    if (barrier) barrier->arrived.rebase(by);
  }
}

}  // namespace ptxgen::inline v0::emulator
