// src/emulator/race/global_runs.cpp - global accesses without gaps, checked at once
#include "emulator/race/global.hpp"

namespace ptxgen::inline v0::emulator {

bool GlobalRaces::settled(const Now& now, std::uint32_t id) const noexcept {
  if (id < first_id_) return true;
  const Era* const at = era(id);
  return at != nullptr && at->block == now.block.order.number() &&
         at->tick <= now.block.order.floor();
}

namespace {

/// The line's part of an info: kind and first lane of line number `i` of a run.
std::uint32_t line_owner(unsigned bytes, std::uint32_t warp, std::uint32_t i) {
  const std::uint32_t kind = bytes == 4 ? 1 : bytes == 8 ? 2 : 3;
  return kind << 26 | thread_of(warp, i * (128 / bytes));
}

}  // namespace

bool GlobalRaces::run(Now& now, std::uint32_t count) {
  const RaceAccess& access = now.access;
  const std::uint64_t base = access.addresses[0];
  const std::uint64_t size = std::uint64_t{count} * access.bytes;
  if (!shadow_->holds(base, size)) return false;
  const std::uint64_t first = shadow_->granule(base);
  const auto granules = static_cast<std::uint32_t>(size / 4);
  const RaceTeam::Hold hold(*team_, first, first + granules - 1);
  shadow_->touch(first, granules);
  const bool write = is_write(now.mark);
  if (write) team_->before_write(base, size);
  if (first % GlobalShadow::kLineGranules == 0 && access.mask == 0xffffffffu && access.bytes >= 4 &&
      (write ? write_lines(now, first, granules) : read_lines(now, first, granules))) {
    return true;
  }
  const std::uint64_t last_line = (first + granules - 1) / GlobalShadow::kLineGranules;
  for (std::uint64_t line = first / GlobalShadow::kLineGranules; line <= last_line; ++line) {
    open_reads(line);
    open_writes(line);
  }
  const RunTable& table = run_table(access.bytes);
  return write ? write_run(now, first, granules, table) : read_run(now, first, granules, table);
}

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
      const bool own = written[i] == now.era && (info & kLineOwner) == owner;
      if (!own && !settled(now, written[i])) return false;
    }
    if (read[i] >= first_id_) {
      const std::uint32_t info = read_info[i];
      // With another mapping of lanes to granules, check by granule.
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
    const Era* const at = era(read[i]);
    const bool own = at != nullptr && at->block == order.number();
    if ((info & kSeveral) == 0) {
      const Other other = weak_read(read[i], info, lanes);
      if (unordered(now, lanes, other) == 0) {
        begin();
        continue;
      }
    } else if ((info & kBlocksFlag) == 0 && settled(now, read[i])) {
      begin();
      continue;
    }
    if (!own) {
      info |= kBlocksFlag;
    } else if ((info >> 5 & 31u) != now.warp) {
      info |= kWarpsFlag;
    }
    // The same warp again: each lane reads the same bytes.
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
      const bool own = written[i] == now.era && (info & kLineOwner) == owner;
      if (!own && !settled(now, written[i])) return false;
    }
    if (read[i] >= first_id_) {
      const std::uint32_t info = read_info[i];
      if ((info & kLineKind) == 0 || (info & kBlocksFlag) != 0) return false;
      const bool own = read[i] == now.era && (info & (kLineOwner | kSeveral)) == owner;
      if (!own && !settled(now, read[i])) return false;
    }
  }
  for (std::uint32_t i = 0; i < lines; ++i) {
    written[i] = now.era;
    write_info[i] = now.info | line_owner(now.access.bytes, now.warp, i);
    read[i] = 0;
  }
  return true;
}

bool GlobalRaces::writes_settled(const Now& now, std::uint64_t first, std::uint32_t count,
                                 const RunTable& table, std::uint32_t flat) const noexcept {
  const std::uint32_t* own = table.first.data();
  const std::uint32_t* written = shadow_->written + first;
  const std::uint32_t* info = shadow_->write_info + first;
  std::uint32_t seen = 0;
  bool ok = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t id = written[i];
    if (id < first_id_) continue;
    if (id == now.era && (info[i] & (kOwner | kStrong)) == (flat | (own[i] & 31u))) continue;
    if (id != seen) {
      ok = settled(now, id);
      seen = id;
    }
    if (!ok || (info[i] & kPartial) == kPartial) return false;
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
  if (!writes_settled(now, first, count, table, flat)) return false;
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
      const std::uint32_t self = flat | (own[i] & 31u);
      if (written[i] >= launch) {
        if ((write_info[i] & kPartial) == kPartial) return false;
        if (!(written[i] == now.era && (write_info[i] & (kOwner | kStrong)) == self) &&
            !old(written[i])) {
          return false;
        }
      }
      if (read[i] >= launch) {
        if ((read_info[i] & kBlocksFlag) != 0) return false;
        const bool by_me = read[i] == now.era && (read_info[i] & (kOwner | kSeveral)) == self;
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

}  // namespace ptxgen::inline v0::emulator
