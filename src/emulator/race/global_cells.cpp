// src/emulator/race/global_cells.cpp - global accesses granule by granule, and their races
#include <algorithm>

#include "emulator/race/global.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

constexpr std::size_t kMaxEntries = 64;

/// The unit code of 1 or 2 bytes.
constexpr std::uint8_t kNarrowUnit = 3;
/// A unit in two bits: 4, 8, 16 bytes, or less than 4.
constexpr std::uint32_t unit_code(std::uint8_t unit) noexcept {
  return unit == 4 ? 0u : unit == 8 ? 1u : unit == 16 ? 2u : 3u;
}
constexpr std::uint8_t unit_of_code(std::uint32_t code) noexcept {
  constexpr std::uint8_t kUnits[] = {4, 8, 16, kNarrowUnit};
  return kUnits[code & 3u];
}
bool mixed_with(const Mark now, std::uint8_t unit, const Mark old, std::uint8_t old_unit) {
  if (old_unit == 0) return false;
  if (old_unit == kNarrowUnit) old_unit = unit < 4 ? unit : 2;
  return mixes_widths(now, unit, old, old_unit);
}

}  // namespace

void GlobalRaces::range(Now& now, std::uint32_t lanes, std::uint64_t address) {
  const std::uint64_t bytes = now.access.bytes;
  if (!shadow_->holds(address, bytes)) return;  // found and reported elsewhere
  const RaceTeam::Hold hold(*team_, shadow_->granule(address),
                            shadow_->granule(address + bytes - 1));
  shadow_->touch(shadow_->granule(address), (bytes + 6) / 4);
  if (is_write(now.mark)) team_->before_write(address, bytes);
  for (std::uint64_t at = address & ~std::uint64_t{3}; at < address + bytes; at += 4) {
    const std::uint64_t from = std::max(at, address) - at;
    const std::uint64_t to = std::min(at + 4, address + bytes) - at;
    const auto mask = static_cast<std::uint8_t>((1u << to) - (1u << from));
    const std::uint64_t granule = shadow_->granule(at);
    open_reads(granule / GlobalShadow::kLineGranules);
    open_writes(granule / GlobalShadow::kLineGranules);
    if (is_write(now.mark)) {
      write_granule(now, granule, lanes, mask);
    } else {
      check_writes(now, granule, lanes, mask);
      note_read(now, granule, lanes, mask);
    }
    if (is_strong(now.mark)) check_scopes(now, granule, lanes, mask);
  }
}

std::uint32_t GlobalRaces::unordered(const Now& now, std::uint32_t lanes,
                                     const Other& other) const {
  const ThreadOrder& order = now.block.order;
  const Era* const at = era(other.era);
  if (at == nullptr) return lanes;
  if (at->block == order.number()) {
    return order.unordered(now.warp, lanes, other.warp, other.lanes, at->tick);
  }
  std::uint32_t result = 0;
  for_each_lane(lanes, [&](unsigned lane) {
    const ForeignPointer& foreign = order.foreign(now.warp, lane);
    if (foreign) {
      const auto found = foreign->find(at->block);
      if (found != foreign->end() &&
          found->second.unknown(other.warp, other.lanes, at->tick) == 0) {
        return;
      }
    }
    result |= 1u << lane;
  });
  return result;
}

void GlobalRaces::check(Now& now, std::uint64_t granule, std::uint32_t lanes, std::uint8_t bytes,
                        const Other& other) {
  if (other.era < first_id_) return;
  const Era* const at = era(other.era);
  const bool own = at != nullptr && at->block == now.block.order.number();
  Rule rule = Rule::GlobalRace;
  const bool mixed = mixed_with(now.mark, now.unit, other.mark, other.unit);
  if (!mixed && !conflict(now.mark, other.mark)) {
    // Strong accesses do not race if both scopes include both threads.
    const bool both = is_write(now.mark) || is_write(other.mark);
    if (!both || own) return;
    const std::uint64_t linear = now.context.cta->linear;
    const auto narrow = [&](ptx::Modifier scope) {
      if (at == nullptr) return scope != ptx::Modifier::none;
      return !reaches_blocks(*now.context.grid, scope, linear, at->cta);
    };
    if (!narrow(now.scope) && !narrow(other.scope)) return;
    rule = Rule::ScopeTooNarrow;
  }
  for_each_lane(unordered(now, lanes, other), [&](unsigned lane) {
    const std::uint32_t who =
        own ? now.block.order.unordered_with(now.warp, lane, other.warp, other.lanes, at->tick)
            : other.lanes;
    report(now, granule, lane, bytes, other, static_cast<std::uint32_t>(std::countr_zero(who)),
           rule);
  });
}

void GlobalRaces::check_writes(Now& now, std::uint64_t granule, std::uint32_t lanes,
                               std::uint8_t bytes) {
  const std::uint32_t id = shadow_->written[granule];
  if (id < first_id_) return;
  const std::uint32_t info = shadow_->write_info[granule];
  if ((info & kPartial) == kPartial) {
    for (const Entry& at : team_->lists(granule)[granule]) {
      if ((at.bytes & bytes) == 0) continue;
      check(now, granule, lanes, at.bytes & bytes,
            {at.era, at.warp, at.lanes, at.statement,
             at.strong ? Mark::StrongWrite : Mark::WeakWrite, ptx::Modifier::none, false, at.unit});
    }
    return;
  }
  const std::uint32_t code = info >> 26 & 3u;
  const std::uint32_t width = code == 0 ? 1 : code == 1 ? 2 : 4;
  const std::uint32_t first = info & 31u;
  for (std::uint32_t part = 0; part < width; ++part) {
    const std::uint8_t there = bytes_of_lane(code, part);
    if ((there & bytes) == 0) continue;
    check(now, granule, lanes, there & bytes,
          {id, info >> 5 & 31u, 1u << (first + part), long_statement(info),
           (info & kStrong) != 0 ? Mark::StrongWrite : Mark::WeakWrite, ptx::Modifier::none, false,
           unit_of_code(info >> kUnitShift)});
  }
}

void GlobalRaces::check_reads(Now& now, std::uint64_t granule, std::uint32_t lanes,
                              std::uint8_t bytes) {
  const std::uint32_t id = shadow_->read[granule];
  if (id < first_id_) return;
  const std::uint32_t info = shadow_->read_info[granule];
  const bool strong = (info & kStrong) != 0;
  const Mark mark = strong ? Mark::StrongRead : Mark::WeakRead;
  const std::uint32_t code = info >> 26 & 3u;
  // The read bytes are unknown: only a write of all bytes certainly overlaps them.
  if (code == 3 && bytes != 0xf) return;
  const std::uint32_t width = strong ? 1 : code == 1 ? 2 : code == 2 ? 4 : 1;
  Other other{.era = id,
              .warp = info >> 5 & 31u,
              .statement = long_statement(info),
              .mark = mark,
              .unit = strong ? unit_of_code(code) : std::uint8_t{0}};
  std::uint32_t rest = lanes;
  for (std::uint32_t part = 0; part < width; ++part) {
    const std::uint8_t there = strong || code == 3 ? std::uint8_t{0xf} : bytes_of_lane(code, part);
    if ((there & bytes) == 0) continue;
    other.lanes = 1u << ((info & 31u) + part);
    rest &= ~unordered(now, lanes, other);
    check(now, granule, lanes, there & bytes, other);
  }
  if ((info & kSeveral) == 0 || rest == 0 || bytes != 0xf || !conflict(now.mark, mark)) return;
  check_vague(now, granule, rest, bytes, other);
}

/// The known reader is ordered or this thread itself: whether there is certainly another one.
void GlobalRaces::check_vague(Now& now, std::uint64_t granule, std::uint32_t lanes,
                              std::uint8_t bytes, Other other) {
  const std::uint32_t info = shadow_->read_info[granule];
  const Era* const at = era(other.era);
  const ThreadOrder& order = now.block.order;
  const bool own = at != nullptr && at->block == order.number();
  other.vague = true;
  other.lanes = 1u << (info & 31u);
  for_each_lane(lanes, [&](unsigned lane) {
    bool certain = false;
    const std::uint32_t known =
        own && at->tick > order.floor() ? order.known(now.warp, lane).warps_known_at(at->tick) : 32;
    if ((info & kBlocksFlag) != 0) {
      certain = own && !order.foreign(now.warp, lane);
    }
    if (!certain && (info & kWarpsFlag) != 0) {
      certain = known == 0 || (known == 1 && other.warp == now.warp);
    }
    if (!certain && (info & kLanesFlag) != 0) certain = known == 0;
    if (certain) report(now, granule, lane, bytes, other, info & 31u, Rule::GlobalRace);
  });
}

void GlobalRaces::note_read(Now& now, std::uint64_t granule, std::uint32_t lanes,
                            std::uint8_t bytes) {
  std::uint32_t& id = shadow_->read[granule];
  std::uint32_t& info = shadow_->read_info[granule];
  const std::uint32_t part = bytes != 0xf                   ? kPartial
                             : now.mark == Mark::StrongRead ? unit_code(now.unit) << 26
                                                            : 0u;
  const auto first = static_cast<std::uint32_t>(std::countr_zero(lanes));
  const auto begin = [&] {
    id = now.era;
    info = now.info | part | thread_of(now.warp, first) | (one_bit(lanes) ? 0u : kLanesFlag);
  };
  if (id < first_id_) return begin();
  const bool strong = (info & kStrong) != 0;
  if (strong && now.mark == Mark::WeakRead) return begin();
  if (!strong && now.mark == Mark::StrongRead) return;  // keep the weak one
  const Era* const at = era(id);
  const bool own = at != nullptr && at->block == now.block.order.number();
  const std::uint32_t code = strong ? 0u : info >> 26 & 3u;
  const std::uint32_t width = code == 1 ? 3u : code == 2 ? 15u : 1u;
  const std::uint32_t owners = width << (info & 31u);
  if ((info & kSeveral) == 0) {
    const Other other = weak_read(id, info, owners);
    if (unordered(now, lanes, other) == 0 && !(own && id == now.era && code != 0)) {
      return begin();
    }
  } else if ((info & kBlocksFlag) == 0 && settled(now, id)) {
    return begin();
  }
  if (!own) {
    info |= kBlocksFlag;
  } else if ((info >> 5 & 31u) != now.warp) {
    info |= kWarpsFlag;
  } else if ((lanes & ~owners) != 0 || code != 0) {
    info |= kLanesFlag;
  }
  // Keep bytes and unit of the first strong read.
  if (bytes != 0xf && !strong) info |= kPartial;
}

std::vector<RaceTeam::Entry>& GlobalRaces::list(Now& now, std::uint64_t granule) {
  std::uint32_t& id = shadow_->written[granule];
  std::uint32_t& info = shadow_->write_info[granule];
  std::vector<Entry>& entries = team_->lists(granule)[granule];
  if (id >= first_id_ && (info & kPartial) == kPartial) return entries;
  entries.clear();
  if (id >= first_id_) {
    const std::uint32_t code = info >> 26 & 3u;
    const std::uint32_t width = code == 0 ? 1 : code == 1 ? 2 : 4;
    for (std::uint32_t part = 0; part < width; ++part) {
      entries.push_back({id, 1u << ((info & 31u) + part), long_statement(info),
                         static_cast<std::uint8_t>(info >> 5 & 31u), bytes_of_lane(code, part),
                         unit_of_code(info >> kUnitShift), (info & kStrong) != 0});
    }
  }
  id = now.era;
  info = kPartial;
  return entries;
}

void GlobalRaces::write_granule(Now& now, std::uint64_t granule, std::uint32_t lanes,
                                std::uint8_t bytes) {
  check_writes(now, granule, lanes, bytes);
  check_reads(now, granule, lanes, bytes);
  std::uint32_t& id = shadow_->written[granule];
  std::uint32_t& info = shadow_->write_info[granule];
  const bool strong = is_strong(now.mark);
  const bool listed = id >= first_id_ && (info & kPartial) == kPartial;
  const auto first = static_cast<std::uint32_t>(std::countr_zero(lanes));
  const bool weak_before = id >= first_id_ && !listed && (info & kStrong) == 0;
  if (bytes == 0xf && (!strong || (!listed && !weak_before))) {
    if (listed) team_->lists(granule).erase(granule);
    id = now.era;
    info =
        now.info | thread_of(now.warp, first) | (strong ? unit_code(now.unit) << kUnitShift : 0u);
    if (!strong) shadow_->read[granule] = 0;
    return;
  }
  std::vector<Entry>& entries = list(now, granule);
  // The last strong write replaces those before, as in a cell: threads ordered after it have read
  // what they wrote (the last block that resets a counter).
  for (Entry& at : entries) {
    if (!strong || at.strong) at.bytes = static_cast<std::uint8_t>(at.bytes & ~bytes);
  }
  std::erase_if(entries, [](const Entry& at) { return at.bytes == 0; });
  if (entries.size() >= kMaxEntries) entries.erase(entries.begin());
  entries.push_back({now.era, lanes, now.statement, static_cast<std::uint8_t>(now.warp), bytes,
                     now.unit, strong});
}

// Scopes.

void GlobalRaces::check_scopes(Now& now, std::uint64_t granule, std::uint32_t lanes,
                               std::uint8_t bytes) {
  // Each thread of a parallel run has a list of its own: accesses of two of them would not meet.
  if (now.scope != ptx::Modifier::none && team_->parallel()) throw Replay{};
  const auto found = scoped_.find(granule);
  if (found != scoped_.end()) {
    std::vector<ScopedAccess>& all = found->second;
    for (const ScopedAccess& at : all) {
      if ((at.bytes & bytes) != 0) check(now, granule, lanes, at.bytes & bytes, at.access);
    }
    // As in a cell, the last strong write replaces those before.
    for (ScopedAccess& at : all) {
      if (is_write(now.mark) && is_write(at.access.mark)) {
        at.bytes = static_cast<std::uint8_t>(at.bytes & ~bytes);
      }
    }
    std::erase_if(all, [](const ScopedAccess& at) { return at.bytes == 0; });
  }
  if (now.scope != ptx::Modifier::none) keep_scoped(now, scoped_[granule], lanes, bytes);
}

void GlobalRaces::keep_scoped(Now& now, std::vector<ScopedAccess>& all, std::uint32_t lanes,
                              std::uint8_t bytes) {
  // A thread that polls is kept once.
  std::erase_if(all, [&](const ScopedAccess& at) {
    const Era* const when = era(at.access.era);
    return at.access.statement == now.statement && at.access.warp == now.warp &&
           at.access.lanes == lanes && at.bytes == bytes && when != nullptr &&
           when->block == now.block.order.number();
  });
  if (all.size() >= kMaxEntries) all.erase(all.begin());
  all.push_back({{.era = now.era,
                  .warp = now.warp,
                  .lanes = lanes,
                  .statement = now.statement,
                  .mark = now.mark,
                  .scope = now.scope,
                  .unit = now.unit},
                 bytes});
}

// Reports.

bool GlobalRaces::same_value(const Now& now, std::uint64_t granule, std::uint32_t lane,
                             std::uint8_t bytes, std::uint32_t other_lane, bool same_access) const {
  if (now.mark != Mark::WeakWrite || now.access.values == nullptr) return false;
  const std::byte* own = now.access.values + std::size_t{lane} * now.access.value_stride;
  const std::byte* theirs = now.access.values + std::size_t{other_lane} * now.access.value_stride;
  for (std::uint32_t i = 0; i < 4; ++i) {
    if ((bytes >> i & 1u) == 0) continue;
    const std::uint64_t at = shadow_->address(granule) + i;
    const std::byte* there = same_access ? theirs + (at - now.access.addresses[other_lane])
                                         : sink_->content(now.context, false, at);
    if (there == nullptr || *there != own[at - now.access.addresses[lane]]) return false;
  }
  return true;
}

void GlobalRaces::report(Now& now, std::uint64_t granule, std::uint32_t lane, std::uint8_t bytes,
                         const Other& other, std::uint32_t other_lane, Rule rule) {
  if (team_->parallel()) throw Replay{};
  const Era& at = *era(other.era);
  const std::uint64_t linear = now.context.cta->linear;
  Conflict result;
  result.shared = false;
  result.lane = lane;
  result.bytes = now.access.bytes;
  result.address = now.access.addresses[lane];
  result.own = now.mark;
  result.theirs = other.mark;
  result.vague = other.vague;
  result.mixed = rule == Rule::GlobalRace && is_strong(now.mark) && is_strong(other.mark);
  result.same_block = at.cta == linear;
  result.same_warp = result.same_block && other.warp == now.warp;
  result.other = {other.statement, at.cta, thread_of(other.warp, other_lane)};
  std::uint32_t statement = now.statement;
  if (rule == Rule::ScopeTooNarrow) {
    const bool reversed = reaches_blocks(*now.context.grid, now.scope, linear, at.cta);
    result.reversed = reversed;
    result.scope = reversed ? other.scope : now.scope;
  } else if (!result.same_block) {
    // Would a wider scope have ordered them?
    const auto missed = std::ranges::find_if(now.block.missed, [&](const Missed& m) {
      return m.block == at.block && m.known.unknown(other.warp, 1u << other_lane, at.tick) == 0;
    });
    if (missed != now.block.missed.end() && missed->statement != kNoIndex) {
      rule = Rule::ScopeTooNarrow;
      result.scope = missed->scope;
      result.other = missed->releaser;
      if (missed->own) {
        statement = missed->statement;
      } else {
        result.other.statement = missed->statement;
        result.reversed = true;
      }
    }
  }
  if (rule == Rule::GlobalRace && is_write(now.mark) && is_write(other.mark)) {
    const std::uint64_t low = shadow_->address(granule) + std::uint64_t(std::countr_zero(bytes));
    const bool overlaps = low >= now.access.addresses[other_lane] &&
                          low - now.access.addresses[other_lane] < now.access.bytes;
    result.same_access = other.era == now.era && result.same_warp &&
                         other.statement == now.statement && other_lane < lane &&
                         (now.access.mask >> other_lane & 1u) != 0 && overlaps;
    if (same_value(now, granule, lane, bytes, other_lane, result.same_access)) {
      rule = Rule::RaceSameValue;
    }
  }
  // Once for a lane and a statement, not for each word of a vector.
  if (rule != Rule::RaceSameValue) {
    if (now.reported_lane == lane && now.reported_statement == other.statement) return;
    now.reported_lane = lane;
    now.reported_statement = other.statement;
  }
  result.rule = rule;
  sink_->found(now.context, statement, result);
}

}  // namespace ptxgen::inline v0::emulator
