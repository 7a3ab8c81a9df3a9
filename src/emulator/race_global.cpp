// src/emulator/race_global.cpp - races in the global memory of a launch
#include "emulator/race_global.hpp"

#include <algorithm>

namespace ptxgen::inline v0::emulator {

namespace {

// Ids beyond it are not given out: half of what there is, so that no launch runs out.
constexpr std::uint32_t kLastFirstId = 0x8000'0000u;
constexpr std::size_t kMostEntries = 64;
constexpr std::size_t kMostMissed = 256;

bool reaches_blocks(const Grid& grid, ptx::Modifier scope, std::uint64_t a, std::uint64_t b) {
  if (scope == ptx::Modifier::cta) return false;
  if (scope != ptx::Modifier::cluster) return true;
  const auto cluster_of = [&](std::uint64_t cta) {
    const std::uint64_t x = cta % grid.grid.x;
    const std::uint64_t y = cta / grid.grid.x % grid.grid.y;
    const std::uint64_t z = cta / (std::uint64_t{grid.grid.x} * grid.grid.y);
    return std::array{x / std::max(1u, grid.cluster.x), y / std::max(1u, grid.cluster.y),
                      z / std::max(1u, grid.cluster.z)};
  };
  return cluster_of(a) == cluster_of(b);
}

}  // namespace

GlobalRaces::GlobalRaces(std::shared_ptr<GlobalShadow> shadow, std::shared_ptr<RaceSink> sink)
    : shadow_(std::move(shadow)),
      sink_(std::move(sink)),
      sync_([this](const SyncObjects::Party& who, std::uint32_t lane, const Release& release,
                   ptx::Modifier scope, std::uint32_t statement) {
        const Cta& cta = *who.context->cta;
        const Grid& grid = *who.context->grid;
        const bool theirs = !reaches_blocks(grid, release.scope, release.cta, cta.linear);
        const bool mine = !reaches_blocks(grid, scope, release.cta, cta.linear);
        if (!theirs && !mine) return true;
        Block& block = block_of(cta);
        if (block.missed.size() < kMostMissed) {
          Missed missed;
          missed.known = release.known;
          missed.block = release.block;
          missed.scope = theirs ? release.scope : scope;
          missed.statement = theirs ? release.statement : statement;
          missed.releaser = {release.statement, release.cta, release.thread};
          missed.mine = !theirs;
          block.missed.push_back(std::move(missed));
        }
        static_cast<void>(lane);
        return false;
      }) {
  if (shadow_->next_id > kLastFirstId) shadow_->reset();
  first_id_ = shadow_->next_id;
}

std::unique_ptr<Races> make_global_races(std::shared_ptr<GlobalShadow> shadow,
                                         std::shared_ptr<RaceSink> sink) {
  return std::make_unique<GlobalRaces>(std::move(shadow), std::move(sink));
}

GlobalRaces::Block& GlobalRaces::block_of(const Cta& cta) {
  if (&cta == last_cta_) return *last_block_;
  auto& slot = blocks_[cta.linear];
  if (!slot) slot = std::make_unique<Block>(cta, block_count_++);
  last_cta_ = &cta;
  last_block_ = slot.get();
  return *slot;
}

void GlobalRaces::block_begins(const Cta& cta) {
  last_cta_ = nullptr;
  blocks_[cta.linear] = std::make_unique<Block>(cta, block_count_++);
}

void GlobalRaces::block_ends(const Cta& cta) {
  last_cta_ = nullptr;
  blocks_.erase(cta.linear);
}

SyncObjects::Party GlobalRaces::party(Context& context, std::uint32_t statement) {
  Block& block = block_of(*context.cta);
  return {&context, statement, &block.order, &block.lanes[context.warp->index]};
}

std::uint32_t GlobalRaces::era_of(Block& block, const Cta& cta) {
  if (block.era != 0 && block.era_tick == block.order.now()) return block.era;
  block.era_tick = block.order.now();
  block.era = shadow_->next_id++;
  eras_.push_back({cta.linear, block.order.number(), block.era_tick});
  return block.era;
}

std::uint32_t GlobalRaces::short_statement(std::uint32_t statement) {
  if (statement >= short_statements_.size()) {
    if (statement >= 1u << 24) return 0xffff;
    short_statements_.resize(statement + 1, 0xffff);
  }
  std::uint16_t& known = short_statements_[statement];
  if (known == 0xffff && long_statements_.size() < 0xffff) {
    known = static_cast<std::uint16_t>(long_statements_.size());
    long_statements_.push_back(statement);
  }
  return known;
}

std::uint32_t GlobalRaces::long_statement(std::uint32_t info) const noexcept {
  const std::uint32_t number = info >> 10 & 0xffffu;
  return number < long_statements_.size() ? long_statements_[number] : kNoIndex;
}

void GlobalRaces::access(Context& context, std::uint32_t statement, const RaceAccess& access) {
  if (access.mask == 0) return;
  Block& block = block_of(*context.cta);
  const Mark mark = mark_of(access);
  const bool narrow = is_strong(mark) && access.scope == ptx::Modifier::cta;
  Now now{context,
          statement,
          access,
          block,
          context.warp->index,
          mark,
          narrow,
          short_statement(statement) << 10 | (is_strong(mark) ? kStrong : 0u),
          era_of(block, *context.cta)};
  std::uint32_t count = 0;
  if (!is_strong(mark) && is_run(access, count)) {
    const std::uint64_t base = access.addresses[0];
    const std::uint64_t size = std::uint64_t{count} * access.bytes;
    if (shadow_->holds(base, size)) {
      const std::uint64_t first = shadow_->granule(base);
      const auto granules = static_cast<std::uint32_t>(size / 4);
      shadow_->touch(first, granules);
      if (first % GlobalShadow::kLineGranules == 0 && access.mask == 0xffffffffu &&
          access.bytes >= 4 &&
          (is_write(mark) ? write_lines(now, first, granules) : read_lines(now, first, granules))) {
        return;
      }
      const std::uint64_t last_line = (first + granules - 1) / GlobalShadow::kLineGranules;
      for (std::uint64_t line = first / GlobalShadow::kLineGranules; line <= last_line; ++line) {
        open_reads(line);
        open_writes(line);
      }
      const RunTable& table = run_table(access.bytes);
      if (is_write(mark) ? write_run(now, first, granules, table)
                         : read_run(now, first, granules, table)) {
        return;
      }
    }
  }
  if (mark == Mark::WeakWrite) {
    for_each_lane(access.mask,
                  [&](unsigned lane) { range(now, 1u << lane, access.addresses[lane]); });
  } else {
    const AddressGroups groups = group_by_address(access);
    for (std::uint32_t i = 0; i < groups.count; ++i) {
      range(now, groups.lanes[i], groups.address[i]);
    }
  }
  if (is_strong(mark)) sync_.strong_access(party(context, statement), access, 0);
}

void GlobalRaces::synchronise(Context& context, std::uint32_t statement, const RaceAccess& access) {
  // Shared memory of one block: a name that no other block's has.
  const Cta& owner = access.owner != nullptr ? *access.owner : *context.cta;
  const std::uint64_t tag = std::uint64_t{1} << 63 | owner.linear << 24;
  sync_.strong_access(party(context, statement), access, tag);
}

// Runs.

bool GlobalRaces::settled(const Now& now, std::uint32_t id) const noexcept {
  if (id < first_id_) return true;
  const Era& at = era(id);
  return at.block == now.block.order.number() && at.tick <= now.block.order.floor();
}

namespace {

/// The line's part of an info: kind and first lane of line number `i` of a run.
std::uint32_t line_owner(unsigned bytes, std::uint32_t warp, std::uint32_t i) {
  const std::uint32_t kind = bytes == 4 ? 1 : bytes == 8 ? 2 : 3;
  return kind << 26 | thread_of(warp, i * (128 / bytes));
}

}  // namespace

void GlobalRaces::open_reads(std::uint64_t line) {
  std::uint32_t& id = shadow_->line_read[line];
  std::uint32_t& info = shadow_->line_read_info[line];
  if (id >= first_id_ && (info & kLineKind) == 0) return;
  if (id >= first_id_) {
    const std::uint32_t shift = (info & kLineKind) >> 26;  // 1, 2, 3: 1, 2, 4 granules a lane
    for (std::uint32_t i = 0; i < GlobalShadow::kLineGranules; ++i) {
      const std::uint64_t granule = line * GlobalShadow::kLineGranules + i;
      shadow_->read[granule] = id;
      shadow_->read_info[granule] = (info & ~kLineKind) + (i >> (shift - 1));
    }
  }
  id = first_id_;
  info = 0;
}

void GlobalRaces::open_writes(std::uint64_t line) {
  std::uint32_t& id = shadow_->line_written[line];
  std::uint32_t& info = shadow_->line_write_info[line];
  if (id >= first_id_ && (info & kLineKind) == 0) return;
  if (id >= first_id_) {
    const std::uint32_t shift = (info & kLineKind) >> 26;
    for (std::uint32_t i = 0; i < GlobalShadow::kLineGranules; ++i) {
      const std::uint64_t granule = line * GlobalShadow::kLineGranules + i;
      shadow_->written[granule] = id;
      shadow_->write_info[granule] = (info & ~kLineKind) + (i >> (shift - 1));
    }
  }
  id = first_id_;
  info = 0;
}

bool GlobalRaces::read_lines(Now& now, std::uint64_t first, std::uint32_t count) {
  const std::uint64_t line = first / GlobalShadow::kLineGranules;
  const std::uint32_t lines = static_cast<std::uint32_t>(count / GlobalShadow::kLineGranules);
  const std::uint32_t* written = shadow_->line_written + line;
  const std::uint32_t* write_info = shadow_->line_write_info + line;
  std::uint32_t* read = shadow_->line_read + line;
  std::uint32_t* read_info = shadow_->line_read_info + line;
  const ThreadOrder& order = now.block.order;
  for (std::uint32_t i = 0; i < lines; ++i) {
    const std::uint32_t owner = line_owner(now.access.bytes, now.warp, i);
    if (written[i] >= first_id_) {
      const std::uint32_t info = write_info[i];
      if ((info & kLineKind) == 0) return false;
      const bool mine = written[i] == now.era && (info & kLineOwner) == owner;
      if (!mine && !settled(now, written[i])) return false;
    }
    if (read[i] >= first_id_) {
      const std::uint32_t info = read_info[i];
      // Another mapping of lanes to granules is a matter for the granules.
      if ((info & (kLineKind | 31u)) != (owner & (kLineKind | 31u))) return false;
    }
  }
  const std::uint32_t lanes_of_line = 4 * kLanes / now.access.bytes;
  for (std::uint32_t i = 0; i < lines; ++i) {
    const std::uint32_t owner = line_owner(now.access.bytes, now.warp, i);
    const auto begin = [&] {
      read[i] = now.era;
      read_info[i] = now.info | owner;
    };
    if (read[i] < first_id_) {
      begin();
      continue;
    }
    std::uint32_t& info = read_info[i];
    if (read[i] == now.era && (info & (kLineOwner | kSeveral)) == owner) continue;
    const bool plain_foreign = !order.foreign(now.warp, 0) && order.is_whole(now.warp);
    if ((info & kBlocksFlag) != 0 && plain_foreign) continue;
    const std::uint32_t lanes =
        lanes_of_line == kLanes ? ~0u : ((1u << lanes_of_line) - 1) << (owner & 31u);
    const Era& at = era(read[i]);
    const bool mine = at.block == order.number();
    if ((info & kSeveral) == 0) {
      const Other other{read[i], info >> 5 & 31u, lanes, kNoIndex, Mark::WeakRead, false, false};
      if (unordered(now, lanes, other) == 0) {
        begin();
        continue;
      }
    } else if ((info & kBlocksFlag) == 0 && settled(now, read[i])) {
      begin();
      continue;
    }
    if (!mine) {
      info |= kBlocksFlag;
    } else if ((info >> 5 & 31u) != now.warp) {
      info |= kWarpsFlag;
    }
    // The same warp again: each lane reads what it has read before.
  }
  return true;
}

bool GlobalRaces::write_lines(Now& now, std::uint64_t first, std::uint32_t count) {
  const std::uint64_t line = first / GlobalShadow::kLineGranules;
  const std::uint32_t lines = static_cast<std::uint32_t>(count / GlobalShadow::kLineGranules);
  std::uint32_t* written = shadow_->line_written + line;
  std::uint32_t* write_info = shadow_->line_write_info + line;
  std::uint32_t* read = shadow_->line_read + line;
  const std::uint32_t* read_info = shadow_->line_read_info + line;
  for (std::uint32_t i = 0; i < lines; ++i) {
    const std::uint32_t owner = line_owner(now.access.bytes, now.warp, i);
    if (written[i] >= first_id_) {
      const std::uint32_t info = write_info[i];
      if ((info & kLineKind) == 0) return false;
      const bool mine = written[i] == now.era && (info & kLineOwner) == owner;
      if (!mine && !settled(now, written[i])) return false;
    }
    if (read[i] >= first_id_) {
      const std::uint32_t info = read_info[i];
      if ((info & kLineKind) == 0 || (info & kBlocksFlag) != 0) return false;
      const bool mine = read[i] == now.era && (info & (kLineOwner | kSeveral)) == owner;
      if (!mine && !settled(now, read[i])) return false;
    }
  }
  for (std::uint32_t i = 0; i < lines; ++i) {
    written[i] = now.era;
    write_info[i] = now.info | line_owner(now.access.bytes, now.warp, i);
    read[i] = 0;
  }
  return true;
}

bool GlobalRaces::read_run(Now& now, std::uint64_t first, std::uint32_t count,
                           const RunTable& table) {
  const std::uint32_t launch = first_id_;
  const std::uint32_t base = now.warp * kLanes;
  const std::uint32_t* own = table.first.data();
  const std::uint32_t flat = table.code << 26 | base;  // own[i]'s code is 16 bits further down
  std::uint32_t* read = shadow_->read + first;
  std::uint32_t* info = shadow_->read_info + first;
  {
    const std::uint32_t* written = shadow_->written + first;
    const std::uint32_t* write_info = shadow_->write_info + first;
    std::uint32_t seen = 0;
    bool ok = true;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t id = written[i];
      if (id < launch) continue;
      const bool mine =
          id == now.era && (write_info[i] & (kOwner | kStrong)) == (flat | (own[i] & 31u));
      if (mine) continue;
      if (id != seen) {
        ok = settled(now, id);
        seen = id;
      }
      if (!ok || (write_info[i] & kPartial) == kPartial) return false;
    }
  }
  bool any_new = false;
  bool any_old = false;
  bool not_mine = false;
  std::uint32_t flags = ~0u;
  for (std::uint32_t i = 0; i < count; ++i) {
    any_old |= read[i] < launch;
    any_new |= read[i] >= launch;
    not_mine |= (read[i] != now.era) | ((info[i] & (kOwner | kStrong)) != (flat | (own[i] & 31u)));
    flags &= info[i];
  }
  if (!any_new) {
    const std::uint32_t rest = now.info | flat;
    for (std::uint32_t i = 0; i < count; ++i) {
      read[i] = now.era;
      info[i] = rest | (own[i] & 31u);
    }
    return true;
  }
  if (!not_mine) return true;
  if (!any_old && (flags & kBlocksFlag) != 0 && !now.block.order.foreign(now.warp, 0) &&
      now.block.order.is_whole(now.warp)) {
    return true;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    for_each_lane(table.lanes[i], [&](unsigned lane) {
      check_writes(now, first + i, 1u << lane, bytes_of_lane(table.code, lane));
    });
    note_read(now, first + i, table.lanes[i], 0xf);
    // A run's granule that is read whole by several lanes has its code.
    if (table.code != 0 && read[i] == now.era && (info[i] & kSeveral) == kLanesFlag &&
        (info[i] & 0x3ffu) == (base | (own[i] & 31u))) {
      info[i] = (info[i] & ~kLanesFlag) | table.code << 26;
    }
  }
  return true;
}

bool GlobalRaces::write_run(Now& now, std::uint64_t first, std::uint32_t count,
                            const RunTable& table) {
  const std::uint32_t launch = first_id_;
  const std::uint32_t* own = table.first.data();
  const std::uint32_t flat = table.code << 26 | now.warp * kLanes;
  std::uint32_t* written = shadow_->written + first;
  std::uint32_t* write_info = shadow_->write_info + first;
  std::uint32_t* read = shadow_->read + first;
  const std::uint32_t* read_info = shadow_->read_info + first;
  bool fresh = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    fresh &= (written[i] < launch) & (read[i] < launch);
  }
  if (!fresh) {
    std::uint32_t seen = 0;
    bool ok = false;
    const auto old = [&](std::uint32_t id) {
      if (id != seen) {
        ok = settled(now, id);
        seen = id;
      }
      return ok;
    };
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t mine = flat | (own[i] & 31u);
      if (written[i] >= launch) {
        if ((write_info[i] & kPartial) == kPartial) return false;
        if (!(written[i] == now.era && (write_info[i] & (kOwner | kStrong)) == mine) &&
            !old(written[i])) {
          return false;
        }
      }
      if (read[i] >= launch) {
        if ((read_info[i] & kBlocksFlag) != 0) return false;
        const bool by_me = read[i] == now.era && (read_info[i] & (kOwner | kSeveral)) == mine;
        if (!by_me && !old(read[i])) return false;
      }
    }
  }
  const std::uint32_t rest = now.info | flat;
  for (std::uint32_t i = 0; i < count; ++i) {
    written[i] = now.era;
    write_info[i] = rest | (own[i] & 31u);
    read[i] = 0;
  }
  return true;
}

// Granule by granule.

void GlobalRaces::range(Now& now, std::uint32_t lanes, std::uint64_t address) {
  const std::uint64_t bytes = now.access.bytes;
  if (!shadow_->holds(address, bytes)) return;  // found and reported elsewhere
  shadow_->touch(shadow_->granule(address), (bytes + 6) / 4);
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
  }
}

std::uint32_t GlobalRaces::unordered(const Now& now, std::uint32_t lanes,
                                     const Other& other) const {
  const ThreadOrder& order = now.block.order;
  const Era& at = era(other.era);
  if (at.block == order.number()) {
    return order.unordered(now.warp, lanes, other.warp, other.lanes, at.tick);
  }
  std::uint32_t result = 0;
  for_each_lane(lanes, [&](unsigned lane) {
    const ForeignPointer& foreign = order.foreign(now.warp, lane);
    if (foreign) {
      const auto found = foreign->find(at.block);
      if (found != foreign->end() && found->second.unknown(other.warp, other.lanes, at.tick) == 0) {
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
  const Era& at = era(other.era);
  const bool mine = at.block == now.block.order.number();
  Rule rule = Rule::GlobalRace;
  if (!conflict(now.mark, other.mark)) {
    // Strong accesses get along with each other if both scopes hold both threads.
    const bool both = is_write(now.mark) || is_write(other.mark);
    if (!both || mine || !(now.narrow || other.narrow)) return;
    rule = Rule::ScopeTooNarrow;
  }
  for_each_lane(unordered(now, lanes, other), [&](unsigned lane) {
    const std::uint32_t who =
        mine ? now.block.order.unordered_with(now.warp, lane, other.warp, other.lanes, at.tick)
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
    for (const Entry& at : lists_[granule]) {
      if ((at.bytes & bytes) == 0) continue;
      check(now, granule, lanes, at.bytes & bytes,
            {at.era, at.warp, at.lanes, at.statement,
             at.strong ? Mark::StrongWrite : Mark::WeakWrite, at.narrow, false});
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
           (info & kStrong) != 0 ? Mark::StrongWrite : Mark::WeakWrite, (info & kNarrow) != 0,
           false});
  }
}

void GlobalRaces::check_reads(Now& now, std::uint64_t granule, std::uint32_t lanes,
                              std::uint8_t bytes) {
  const std::uint32_t id = shadow_->read[granule];
  if (id < first_id_) return;
  const std::uint32_t info = shadow_->read_info[granule];
  const Mark mark = (info & kStrong) != 0 ? Mark::StrongRead : Mark::WeakRead;
  const std::uint32_t code = info >> 26 & 3u;
  // Which bytes were read is not known: only who writes them all certainly meets them.
  if (code == 3 && bytes != 0xf) return;
  const std::uint32_t width = code == 1 ? 2 : code == 2 ? 4 : 1;
  Other other{id, info >> 5 & 31u, 0, long_statement(info), mark, false, false};
  std::uint32_t rest = lanes;
  for (std::uint32_t part = 0; part < width; ++part) {
    const std::uint8_t there = code == 3 ? std::uint8_t{0xf} : bytes_of_lane(code, part);
    if ((there & bytes) == 0) continue;
    other.lanes = 1u << ((info & 31u) + part);
    rest &= ~unordered(now, lanes, other);
    check(now, granule, lanes, there & bytes, other);
  }
  if ((info & kSeveral) == 0 || rest == 0 || bytes != 0xf || !conflict(now.mark, mark)) return;
  // The one that is known is ordered or this very thread; is there certainly another?
  const Era& at = era(id);
  const ThreadOrder& order = now.block.order;
  const bool mine = at.block == order.number();
  other.vague = true;
  other.lanes = 1u << (info & 31u);
  for_each_lane(rest, [&](unsigned lane) {
    bool certain = false;
    const std::uint32_t known =
        mine && at.tick > order.floor() ? order.known(now.warp, lane).warps_known_at(at.tick) : 32;
    if ((info & kBlocksFlag) != 0) {
      certain = mine && !order.foreign(now.warp, lane);
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
  const std::uint32_t part = bytes == 0xf ? 0u : kPartial;
  const auto first = static_cast<std::uint32_t>(std::countr_zero(lanes));
  const auto begin = [&] {
    id = now.era;
    info = now.info | part | thread_of(now.warp, first) | (one_bit(lanes) ? 0u : kLanesFlag);
  };
  if (id < first_id_) return begin();
  const bool strong = (info & kStrong) != 0;
  if (strong && now.mark == Mark::WeakRead) return begin();
  if (!strong && now.mark == Mark::StrongRead) return;  // the weak one says more
  const Era& at = era(id);
  const bool mine = at.block == now.block.order.number();
  const std::uint32_t code = info >> 26 & 3u;
  const std::uint32_t width = code == 1 ? 3u : code == 2 ? 15u : 1u;
  const std::uint32_t owners = width << (info & 31u);
  if ((info & kSeveral) == 0) {
    const Other other{id, info >> 5 & 31u, owners, kNoIndex, Mark::WeakRead, false, false};
    if (unordered(now, lanes, other) == 0 && !(mine && id == now.era && code != 0)) {
      return begin();
    }
  } else if ((info & kBlocksFlag) == 0 && settled(now, id)) {
    return begin();
  }
  if (!mine) {
    info |= kBlocksFlag;
  } else if ((info >> 5 & 31u) != now.warp) {
    info |= kWarpsFlag;
  } else if ((lanes & ~owners) != 0 || code != 0) {
    info |= kLanesFlag;
  }
  if (part != 0) info |= kPartial;
}

std::vector<GlobalRaces::Entry>& GlobalRaces::list(Now& now, std::uint64_t granule) {
  std::uint32_t& id = shadow_->written[granule];
  std::uint32_t& info = shadow_->write_info[granule];
  std::vector<Entry>& entries = lists_[granule];
  if (id >= first_id_ && (info & kPartial) == kPartial) return entries;
  entries.clear();
  if (id >= first_id_) {
    const std::uint32_t code = info >> 26 & 3u;
    const std::uint32_t width = code == 0 ? 1 : code == 1 ? 2 : 4;
    for (std::uint32_t part = 0; part < width; ++part) {
      entries.push_back({id, 1u << ((info & 31u) + part), long_statement(info),
                         static_cast<std::uint8_t>(info >> 5 & 31u), bytes_of_lane(code, part),
                         (info & kStrong) != 0, (info & kNarrow) != 0});
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
    if (listed) lists_.erase(granule);
    id = now.era;
    info = now.info | thread_of(now.warp, first) | (now.narrow ? kNarrow : 0u);
    if (!strong) shadow_->read[granule] = 0;
    return;
  }
  std::vector<Entry>& entries = list(now, granule);
  // Of strong writes the last one stands for those before it, here as in a cell: who is ordered
  // after it has read what they wrote (the last block that sets a counter back).
  for (Entry& at : entries) {
    if (!strong || at.strong) at.bytes = static_cast<std::uint8_t>(at.bytes & ~bytes);
  }
  std::erase_if(entries, [](const Entry& at) { return at.bytes == 0; });
  if (entries.size() >= kMostEntries) entries.erase(entries.begin());
  entries.push_back({now.era, lanes, now.statement, static_cast<std::uint8_t>(now.warp), bytes,
                     strong, now.narrow});
}

// Reports.

bool GlobalRaces::same_value(const Now& now, std::uint64_t granule, std::uint32_t lane,
                             std::uint8_t bytes, std::uint32_t other_lane, bool same_access) const {
  if (now.mark != Mark::WeakWrite || now.access.values == nullptr) return false;
  const std::byte* mine = now.access.values + std::size_t{lane} * now.access.value_stride;
  const std::byte* theirs = now.access.values + std::size_t{other_lane} * now.access.value_stride;
  for (std::uint32_t i = 0; i < 4; ++i) {
    if ((bytes >> i & 1u) == 0) continue;
    const std::uint64_t at = shadow_->address(granule) + i;
    const std::byte* there = same_access ? theirs + (at - now.access.addresses[other_lane])
                                         : sink_->content(now.context, false, at);
    if (there == nullptr || *there != mine[at - now.access.addresses[lane]]) return false;
  }
  return true;
}

void GlobalRaces::report(Now& now, std::uint64_t granule, std::uint32_t lane, std::uint8_t bytes,
                         const Other& other, std::uint32_t other_lane, Rule rule) {
  const Era& at = era(other.era);
  const std::uint64_t linear = now.context.cta->linear;
  Conflict made;
  made.shared = false;
  made.lane = lane;
  made.bytes = now.access.bytes;
  made.address = now.access.addresses[lane];
  made.mine = now.mark;
  made.theirs = other.mark;
  made.vague = other.vague;
  made.same_block = at.cta == linear;
  made.same_warp = made.same_block && other.warp == now.warp;
  made.other = {other.statement, at.cta, thread_of(other.warp, other_lane)};
  std::uint32_t statement = now.statement;
  if (rule == Rule::ScopeTooNarrow) {
    made.scope = ptx::Modifier::cta;
    made.reversed = !now.narrow;
  } else if (!made.same_block) {
    // Would a wider scope have ordered them?
    const auto missed = std::ranges::find_if(now.block.missed, [&](const Missed& m) {
      return m.block == at.block && m.known.unknown(other.warp, 1u << other_lane, at.tick) == 0;
    });
    if (missed != now.block.missed.end() && missed->statement != kNoIndex) {
      rule = Rule::ScopeTooNarrow;
      made.scope = missed->scope;
      made.other = missed->releaser;
      if (missed->mine) {
        statement = missed->statement;
      } else {
        made.other.statement = missed->statement;
        made.reversed = true;
      }
    }
  }
  if (rule == Rule::GlobalRace && is_write(now.mark) && is_write(other.mark)) {
    const std::uint64_t low = shadow_->address(granule) + std::uint64_t(std::countr_zero(bytes));
    const bool overlaps = low >= now.access.addresses[other_lane] &&
                          low - now.access.addresses[other_lane] < now.access.bytes;
    made.same_access = other.era == now.era && made.same_warp && other.statement == now.statement &&
                       other_lane < lane && (now.access.mask >> other_lane & 1u) != 0 && overlaps;
    if (same_value(now, granule, lane, bytes, other_lane, made.same_access)) {
      rule = Rule::RaceSameValue;
    }
  }
  // Once for a lane and a statement, not for each of the words of a vector.
  if (rule != Rule::RaceSameValue) {
    if (now.reported_lane == lane && now.reported_statement == other.statement) return;
    now.reported_lane = lane;
    now.reported_statement = other.statement;
  }
  made.rule = rule;
  sink_->found(now.context, statement, made);
}

// Order.

void GlobalRaces::barrier_arrive(Context& context, std::uint32_t id, std::uint32_t lanes,
                                 bool wait) {
  const SyncObjects::Party who = party(context, kNoIndex);
  // Formally a relaxed read needs a fence behind it; a barrier is taken for one, since NVIDIA's own
  // samples let one thread read a counter and then all of its block read what it guards.
  sync_.take_effect(who, lanes, ptx::Modifier::none);
  who.order->barrier_arrive(context.warp->index, id, lanes, wait);
}

void GlobalRaces::barrier_complete(Cta& cta, std::uint32_t id) {
  block_of(cta).order.barrier_complete(cta, id);
}

void GlobalRaces::warp_sync(Context& context, std::uint32_t lanes) {
  block_of(*context.cta).order.warp_sync(context.warp->index, lanes, context.warp->exited);
}

void GlobalRaces::fence(Context& context, std::uint32_t lanes, ptx::Modifier order,
                        ptx::Modifier scope, std::uint32_t statement) {
  sync_.fence(party(context, statement), lanes, order, scope);
}

namespace {

std::uint64_t key_of(std::uint64_t object, const Cta& owner) { return object ^ owner.linear << 32; }

}  // namespace

void GlobalRaces::release(Context& context, std::uint32_t lanes, std::uint64_t object,
                          const Cta* owner) {
  const SyncObjects::Party who = party(context, kNoIndex);
  if (object >= kClusterBarrierObject) sync_.take_effect(who, lanes, ptx::Modifier::none);
  sync_.release(who, lanes, key_of(object, owner ? *owner : *context.cta));
}

void GlobalRaces::acquire(Context& context, std::uint32_t lanes, std::uint64_t object,
                          const Cta* owner) {
  sync_.acquire(party(context, kNoIndex), lanes, key_of(object, owner ? *owner : *context.cta));
}

void GlobalRaces::forget(std::uint64_t object, const Cta& owner) {
  sync_.forget(key_of(object, owner));
}

std::uint64_t GlobalRaces::overhead_bytes() const noexcept {
  std::uint64_t bytes = shadow_->bytes() + eras_.capacity() * sizeof(Era) + sync_.bytes();
  for (const auto& [granule, entries] : lists_) bytes += 64 + entries.capacity() * sizeof(Entry);
  return bytes;
}

}  // namespace ptxgen::inline v0::emulator
