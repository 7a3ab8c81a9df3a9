// src/emulator/race/shared.cpp - races in one block's shared memory
#include "emulator/race/shared.hpp"

#include <algorithm>
#include <cstring>

namespace ptxgen::inline v0::emulator {

namespace {

constexpr std::uint32_t all_ones(bool set) { return set ? ~0u : 0u; }

}  // namespace

SharedRaces::SharedRaces(const Cta& cta, std::shared_ptr<RaceSink> sink)
    : sink_(std::move(sink)),
      order_(cta, cta.rank),
      // Only between blocks of a cluster.
      sync_([](const SyncObjects::Party&, std::uint32_t, const Release& release,
               ptx::Modifier scope, std::uint32_t) {
        return release.scope != ptx::Modifier::cta && scope != ptx::Modifier::cta;
      }),
      lane_sync_(cta.warps.size()),
      pending_(cta.warps.size()),
      bytes_(cta.shared_bytes),
      cluster_(cta.cluster != nullptr && cta.cluster->blocks.size() > 1 ? cta.cluster : nullptr),
      rank_(cta.rank),
      cluster_floor_(order_.floor()) {
  const std::size_t granules = (cta.shared_bytes + 3) / 4;
  written_.resize(granules);
  read_.resize(granules);
  reader_warps_.resize(granules);
  reader_lanes_.resize(granules);
  write_statement_.resize(granules);
  read_statement_.resize(granules);
}

std::unique_ptr<Races> make_shared_races(const Cta& cta, std::shared_ptr<RaceSink> sink) {
  return std::make_unique<SharedRaces>(cta, std::move(sink));
}

SyncObjects::Party SharedRaces::party(Context& context, std::uint32_t statement) {
  SharedRaces& actor = of(context);
  return {&context, statement, &actor.order_, &actor.lane_sync_[context.warp->index]};
}

void SharedRaces::access(Context& context, std::uint32_t statement, const RaceAccess& access) {
  if (access.mask == 0) return;
  SharedRaces& actor = of(context);
  if (actor.order_.now() >= kLastTick) actor.rebase();
  const bool pending =
      access.kind == RaceAccess::Kind::AsyncRead || access.kind == RaceAccess::Kind::AsyncWrite;
  Now now{context, statement,    access,      context.warp->index, mark_of(access),
          pending, actor.order_, actor.rank_, unit_of(access)};
  if (!matrix_reads_.empty() && is_write(now.mark)) check_matrices(now);
  if (&actor != this) {
    // By granule: such accesses are rare and slow on hardware.
    note_visit(now);
    if (now.mark == Mark::WeakWrite) {
      for_each_lane(access.mask,
                    [&](unsigned lane) { range(now, 1u << lane, access.addresses[lane]); });
    } else {
      by_address(now);
    }
    if (is_strong(access)) synchronise(context, statement, access);
    return;
  }
  if (is_strong(access)) {
    by_address(now);
    synchronise(context, statement, access);
    return;
  }
  if (now.mark == Mark::WeakRead && !pending && all_equal(access) &&
      read_broadcast(now, access.addresses[0])) {
    return;
  }
  std::uint32_t count = 0;
  if (is_run(access, count) && access.kind != RaceAccess::Kind::AsyncRead) {
    const std::uint64_t base = access.addresses[0];
    const std::uint64_t size = std::uint64_t{count} * access.bytes;
    if (base <= bytes_ && size <= bytes_ - base) {
      const auto first = static_cast<std::uint32_t>(base / 4);
      const auto granules = static_cast<std::uint32_t>(size / 4);
      const RunTable& table = run_table(access.bytes);
      if (is_write(now.mark) ? write_run(now, first, granules, table)
                             : read_run(now, first, granules, table)) {
        return;
      }
    }
  }
  if (now.mark == Mark::WeakRead && !pending) {
    by_address(now);
  } else {
    for_each_lane(access.mask,
                  [&](unsigned lane) { range(now, 1u << lane, access.addresses[lane]); });
  }
}

/// All lanes of a warp read the same whole granules. False, with nothing changed, if a cell cannot
/// represent that.
bool SharedRaces::read_broadcast(const Now& now, std::uint64_t address) {
  const std::uint32_t bytes = now.access.bytes;
  if (((address | bytes) & 3u) != 0 || address >= bytes_ || bytes > bytes_ - address) return false;
  const auto first = static_cast<std::uint32_t>(address / 4);
  const std::uint32_t count = bytes / 4;
  const auto warp_part = static_cast<Stamp>(now.warp << 5);
  const Stamp old = stamp(order_.floor() + 1, 0);
  const Stamp warp_old = stamp(order_.together(now.warp) + 1, 0);
  const std::uint32_t read_old = (order_.floor() + 1) << 2;
  const std::uint32_t unreleased = (order_.last_release() + 1) << 2;
  bool differs = false;
  for (std::uint32_t i = first; i < first + count; ++i) {
    const Stamp w = written_[i];
    if (w >= old && !((w & (31 << 5)) == warp_part && w < warp_old)) return false;
    const std::uint32_t read = read_[i];
    differs |= read >= read_old &&
               !(read >= unreleased && (read & 3u) == 0 && reader_lanes_[i] == now.access.mask);
  }
  if (differs) {
    return can_join(now) && join_all(joining(now), first, count, &now.access.mask, 0);
  }
  const std::uint32_t tick = order_.now() << 2;
  for (std::uint32_t i = first; i < first + count; ++i) {
    const std::uint32_t others = read_[i] >= read_old ? reader_warps_[i] : 0;
    reader_warps_[i] = others | 1u << now.warp;
    reader_lanes_[i] = now.access.mask;
    read_[i] = tick;
    read_statement_[i] = now.statement;
  }
  return true;
}

void SharedRaces::synchronise(Context& context, std::uint32_t statement, const RaceAccess& access) {
  sync().strong_access(party(context, statement), access, tag_of(access.owner));
}

// Runs: all granules at once, in loops that the compiler vectorises. Other accesses are checked by
// granule.

bool SharedRaces::read_run(Now& now, std::uint32_t first, std::uint32_t count,
                           const RunTable& table) {
  const std::uint32_t warp_bit = 1u << now.warp;
  const auto warp_part = static_cast<Stamp>(now.warp << 5);
  const Stamp old = stamp(order_.floor() + 1, 0);
  const Stamp warp_old = stamp(order_.together(now.warp) + 1, 0);
  const Stamp pending = stamp(kPendingTick, 0);
  const std::uint32_t read_old = (order_.floor() + 1) << 2;
  const std::uint32_t fresh = (order_.released(now.warp) + 1) << 2;
  const Stamp* written = written_.data() + first;
  std::uint32_t* read = read_.data() + first;
  std::uint32_t* warps = reader_warps_.data() + first;
  std::uint32_t* lanes = reader_lanes_.data() + first;
  std::uint32_t* statements = read_statement_.data() + first;
  const std::uint32_t* own = table.first.data();
  const std::uint32_t* own_lanes = table.lanes.data();

  // Numbers, not bools: g++ vectorises these loops only without mixed widths.
  std::uint32_t races = 0;
  std::uint32_t news = 0;
  std::uint32_t others = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Stamp w = written[i];
    const std::uint32_t self =
        all_ones((w & 0xfff) == (static_cast<Stamp>(own[i]) | warp_part)) & all_ones(w < pending);
    const std::uint32_t synced = all_ones((w & (31 << 5)) == warp_part) & all_ones(w < warp_old);
    races |= ~(all_ones(w < old) | self | synced);
    news |= all_ones(read[i] < fresh) | ((read[i] & 3) ^ table.code) | (~warps[i] & warp_bit) |
            (own_lanes[i] & ~lanes[i]);
    others |= all_ones(read[i] >= read_old);
  }
  if (races != 0) return false;
  if (news == 0) return true;
  const std::uint32_t tick = order_.now() << 2 | table.code;
  if (others == 0) {
    std::fill_n(read, count, tick);
    std::fill_n(warps, count, warp_bit);
    std::copy_n(own_lanes, count, lanes);
    std::fill_n(statements, count, now.statement);
    return true;
  }
  // Other warps have read the same with the same lanes: the common case of a tile.
  const std::uint32_t unreleased = (order_.last_release() + 1) << 2;
  std::uint32_t differs = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    differs |=
        all_ones(read[i] < unreleased) | ((read[i] & 3) ^ table.code) | (lanes[i] ^ own_lanes[i]);
  }
  if (differs != 0) return can_join(now) && join_run(now, first, count, table);
  std::fill_n(read, count, tick);
  for (std::uint32_t i = 0; i < count; ++i) warps[i] |= warp_bit;
  std::fill_n(statements, count, now.statement);
  return true;
}

bool SharedRaces::write_run(Now& now, std::uint32_t first, std::uint32_t count,
                            const RunTable& table) {
  const std::uint32_t warp_bit = 1u << now.warp;
  const auto warp_part = static_cast<Stamp>(now.warp << 5);
  const Stamp old = stamp(order_.floor() + 1, 0);
  const Stamp warp_old = stamp(order_.together(now.warp) + 1, 0);
  const Stamp pending = stamp(kPendingTick, 0);
  const std::uint32_t read_old = (order_.floor() + 1) << 2;
  const std::uint32_t read_warp_old = (order_.together(now.warp) + 1) << 2;
  Stamp* written = written_.data() + first;
  std::uint32_t* read = read_.data() + first;
  std::uint32_t* statements = write_statement_.data() + first;
  const std::uint32_t* warps = reader_warps_.data() + first;
  const std::uint32_t* lanes = reader_lanes_.data() + first;
  const std::uint32_t* own = table.first.data();
  const std::uint32_t* own_lanes = table.lanes.data();

  std::uint32_t races = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Stamp w = written[i];
    const std::uint32_t self =
        all_ones((w & 0xfff) == (static_cast<Stamp>(own[i]) | warp_part)) & all_ones(w < pending);
    const std::uint32_t synced = all_ones((w & (31 << 5)) == warp_part) & all_ones(w < warp_old);
    races |= ~(all_ones(w < old) | self | synced);
    const std::uint32_t read_mine =
        all_ones(lanes[i] == own_lanes[i]) & all_ones((read[i] & 3) == table.code);
    races |= ~(all_ones(read[i] < read_old) |
               (all_ones(warps[i] == warp_bit) & (read_mine | all_ones(read[i] < read_warp_old))));
  }
  if (races != 0) return false;
  const Tick tick = now.pending ? kPendingTick : order_.now();
  const Stamp rest = stamp(tick, now.warp << 5);
  for (std::uint32_t i = 0; i < count; ++i) {
    written[i] = rest | static_cast<Stamp>(own[i]);
  }
  std::fill_n(read, count, 0u);
  std::fill_n(statements, count, now.statement);
  if (now.pending) {
    for (std::uint32_t i = 0; i < count; ++i) {
      for_each_lane(own_lanes[i], [&](unsigned lane) {
        pending_[now.warp].push_back({first + i, lane, now.access.ticket});
      });
    }
  }
  return true;
}

void SharedRaces::range(Now& now, std::uint32_t lanes, std::uint64_t address) {
  const std::uint64_t bytes = now.access.bytes;
  if (address >= bytes_ || bytes > bytes_ - address) return;  // found and reported elsewhere
  for (std::uint64_t at = address & ~std::uint64_t{3}; at < address + bytes; at += 4) {
    const std::uint64_t from = std::max(at, address) - at;
    const std::uint64_t to = std::min(at + 4, address + bytes) - at;
    const auto mask = static_cast<std::uint8_t>((1u << to) - (1u << from));
    const auto granule = static_cast<std::uint32_t>(at / 4);
    if (mask != 0xf || is_strong(now.mark) || written_[granule] == kSlow || now.block != rank_ ||
        has_many_times(granule) || (now.pending && !is_write(now.mark))) {
      slow(now, granule, lanes, mask);
    } else if (is_write(now.mark)) {
      write_granule(now, granule, static_cast<std::uint32_t>(std::countr_zero(lanes)));
    } else {
      read_granule(now, granule, lanes);
    }
  }
}

void SharedRaces::check_last_write(Now& now, std::uint32_t granule, std::uint32_t lanes) {
  const Stamp last = written_[granule];
  const auto tick = static_cast<Tick>(last) >> 12;
  if (tick <= order_.floor()) return;
  const auto bits = static_cast<std::uint32_t>(last);
  Record other;
  other.block = static_cast<std::uint8_t>(rank_);
  other.warp = static_cast<std::uint8_t>(bits >> 5 & 31u);
  const std::uint32_t code = bits >> 10 & 3u;
  const std::uint32_t first = bits & 31u;
  other.lanes = (code == 0 ? 1u : code == 1 ? 3u : 15u) << first;
  other.tick = tick;
  other.statement = write_statement_[granule];
  other.bytes = 0xf;
  other.mark = Mark::WeakWrite;
  other.pending = tick == kPendingTick;
  const std::uint32_t bad =
      other.pending ? lanes
                    : order_.unordered(now.warp, lanes, other.warp, other.lanes, other.tick);
  for_each_lane(bad, [&](unsigned lane) {
    const std::uint32_t who =
        other.pending ? other.lanes
                      : order_.unordered_with(now.warp, lane, other.warp, other.lanes, other.tick);
    const auto other_lane = static_cast<std::uint32_t>(std::countr_zero(who));
    Record single = other;
    single.bytes = bytes_of_lane(code, other_lane);
    report(now, granule, lane, single.bytes, single, other_lane);
  });
}

bool SharedRaces::unreleased(std::uint32_t warps, Tick tick) const noexcept {
  if (tick > order_.last_release()) return true;
  for (; warps != 0; warps &= warps - 1) {
    if (tick <= order_.released(static_cast<std::uint32_t>(std::countr_zero(warps)))) return false;
  }
  return true;
}

void SharedRaces::read_granule(Now& now, std::uint32_t granule, std::uint32_t lanes) {
  check_last_write(now, granule, lanes);
  const std::uint32_t warp_bit = 1u << now.warp;
  const Tick tick = read_[granule] >> 2;
  const std::uint32_t code = read_[granule] & 3u;
  std::uint32_t& warps = reader_warps_[granule];
  std::uint32_t& readers = reader_lanes_[granule];
  const auto begin = [&] {
    warps = warp_bit;
    readers = lanes;
  };
  if (tick <= order_.floor()) {
    begin();
  } else {
    const bool single = one_bit(warps);
    const auto only = static_cast<std::uint32_t>(std::countr_zero(warps));
    if (single && order_.unordered(now.warp, lanes, only, readers, tick) == 0) {
      begin();
    } else if (code != 0 || !unreleased(warps, tick)) {
      return slow(now, granule, lanes, 0xf);
    } else if ((warps & warp_bit) != 0 && (lanes & ~readers) == 0) {
      // Known already.
    } else if (warps == warp_bit) {
      readers |= lanes;
    } else if (lanes == readers) {
      warps |= warp_bit;
    } else {
      return slow(now, granule, lanes, 0xf);
    }
  }
  read_[granule] = order_.now() << 2;
  read_statement_[granule] = now.statement;
}

void SharedRaces::write_granule(Now& now, std::uint32_t granule, std::uint32_t lane) {
  check_last_write(now, granule, 1u << lane);
  const Tick tick = read_[granule] >> 2;
  if (tick > order_.floor()) {
    Record other;
    other.block = static_cast<std::uint8_t>(rank_);
    other.lanes = reader_lanes_[granule];
    other.tick = tick;
    other.statement = read_statement_[granule];
    other.mark = Mark::WeakRead;
    const std::uint32_t code = read_[granule] & 3u;
    for_each_lane(reader_warps_[granule], [&](unsigned warp) {
      other.warp = static_cast<std::uint8_t>(warp);
      const std::uint32_t who =
          order_.unordered_with(now.warp, lane, warp, other.lanes, other.tick);
      if (who == 0) return;
      const auto other_lane = static_cast<std::uint32_t>(std::countr_zero(who));
      other.bytes = bytes_of_lane(code, other_lane);
      report(now, granule, lane, other.bytes, other, other_lane);
    });
  }
  const Tick stamped = now.pending ? kPendingTick : order_.now();
  written_[granule] = stamp(stamped, thread_of(now.warp, lane));
  write_statement_[granule] = now.statement;
  read_[granule] = 0;
  if (now.pending && !now.bulk) pending_[now.warp].push_back({granule, lane, now.access.ticket});
}

// Records.

Records& SharedRaces::expand(std::uint32_t granule) {
  if (written_[granule] == kSlow) return records_[reader_warps_[granule]];
  std::uint32_t index = 0;
  if (free_records_.empty()) {
    index = static_cast<std::uint32_t>(records_.size());
    records_.emplace_back();
  } else {
    index = free_records_.back();
    free_records_.pop_back();
  }
  Records& records = records_[index];
  const auto bits = static_cast<std::uint32_t>(written_[granule]);
  const auto add = [&](std::uint32_t warp, std::uint32_t lanes, Tick tick, std::uint32_t code,
                       std::uint32_t statement, Mark mark) {
    const std::uint32_t parts = code == 0 ? 1 : code == 1 ? 2 : 4;
    const std::uint32_t every = code == 0 ? ~0u : code == 1 ? 0x55555555u : 0x11111111u;
    for (std::uint32_t part = 0; part < parts; ++part) {
      Record record;
      record.lanes = lanes & every << part;
      if (record.lanes == 0) continue;
      record.tick = tick;
      record.statement = statement;
      record.warp = static_cast<std::uint8_t>(warp);
      record.block = static_cast<std::uint8_t>(rank_);
      record.bytes = bytes_of_lane(code, part);
      record.mark = mark;
      record.pending = tick == kPendingTick;
      records.push_back(record);
    }
  };
  if (const Tick tick = bits >> 12; tick > forgotten(rank_)) {
    const std::uint32_t code = bits >> 10 & 3u;
    const std::uint32_t width = code == 0 ? 1u : code == 1 ? 3u : 15u;
    add(bits >> 5 & 31u, width << (bits & 31u), tick, code, write_statement_[granule],
        Mark::WeakWrite);
  }
  if (has_many_times(granule)) {
    add_readers(granule, records);
  } else if (const Tick tick = read_[granule] >> 2; tick > forgotten(rank_)) {
    for_each_lane(reader_warps_[granule], [&](unsigned warp) {
      add(warp, reader_lanes_[granule], tick, read_[granule] & 3u, read_statement_[granule],
          Mark::WeakRead);
    });
  }
  written_[granule] = kSlow;
  reader_warps_[granule] = index;
  return records;
}

void SharedRaces::release_records(std::uint32_t granule) {
  const std::uint32_t index = reader_warps_[granule];
  records_[index].clear();
  free_records_.push_back(index);
  written_[granule] = 0;
  read_[granule] = 0;
}

void SharedRaces::simplify(std::uint32_t granule) {
  const Records& records = records_[reader_warps_[granule]];
  if (records.empty()) return release_records(granule);
  if (records.size() != 1 || records[0].bytes != 0xf || is_strong(records[0].mark) ||
      records[0].block != rank_) {
    return;
  }
  const Record only = records[0];
  if (only.pending && only.mark == Mark::WeakRead) return;
  if (only.mark == Mark::WeakWrite && !one_bit(only.lanes)) return;
  release_records(granule);
  if (only.mark == Mark::WeakWrite) {
    const Tick tick = only.pending ? kPendingTick : only.tick;
    written_[granule] =
        stamp(tick, thread_of(only.warp, static_cast<std::uint32_t>(std::countr_zero(only.lanes))));
    write_statement_[granule] = only.statement;
  } else {
    read_[granule] = only.tick << 2;
    reader_warps_[granule] = 1u << only.warp;
    reader_lanes_[granule] = only.lanes;
    read_statement_[granule] = only.statement;
  }
}

void SharedRaces::slow(Now& now, std::uint32_t granule, std::uint32_t lanes, std::uint8_t bytes) {
  Records& records = expand(granule);
  std::erase_if(records,
                [this](const Record& at) { return !at.pending && at.tick <= forgotten(at.block); });
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& at = records[i];
    if ((at.bytes & bytes) == 0) continue;
    if (!conflict(now.mark, at.mark) && !mixes_widths(now.mark, now.unit, at.mark, at.unit)) {
      continue;
    }
    const std::uint32_t bad = at.pending ? lanes : unordered(now, lanes, at);
    for_each_lane(bad, [&](unsigned lane) {
      if (at.mark == Mark::StrongWrite && seen_by_atomic(now, records, i, lane, bytes)) return;
      const std::uint32_t who = at.pending ? at.lanes : unordered_with(now, lane, at);
      report(now, granule, lane, at.bytes & bytes, at,
             static_cast<std::uint32_t>(std::countr_zero(who)));
    });
  }
  insert(now, records, lanes, bytes);
  if (now.pending && !now.bulk) {
    for_each_lane(lanes, [&](unsigned lane) {
      pending_[now.warp].push_back({granule, lane, now.access.ticket});
    });
  }
  simplify(granule);
}

/// Whether an atomic after a strong write, which has read it, is ordered before the lane: the last
/// of many that count, which resets the counter.
bool SharedRaces::seen_by_atomic(const Now& now, const Records& records, std::size_t index,
                                 std::uint32_t lane, std::uint8_t bytes) const {
  const auto meant = static_cast<std::uint8_t>(records[index].bytes & bytes);
  for (std::size_t i = index + 1; i < records.size(); ++i) {
    const Record& at = records[i];
    if (at.atomic && (at.bytes & meant) == meant && unordered(now, 1u << lane, at) == 0) {
      return true;
    }
  }
  return false;
}

void SharedRaces::insert(Now& now, Records& records, std::uint32_t lanes, std::uint8_t bytes) {
  constexpr std::size_t kMax = 512;  // more than real kernels need
  const bool atomic = now.access.kind == RaceAccess::Kind::Atomic;
  std::size_t merged = records.size();
  for (std::size_t i = 0; i < records.size(); ++i) {
    Record& at = records[i];
    if (merged == records.size() && at.atomic == atomic && at.warp == now.warp &&
        at.block == now.block && at.mark == now.mark && at.unit == now.unit && at.bytes == bytes &&
        !at.pending && !now.pending && at.tick > now.order.released(now.warp) &&
        now.mark != Mark::WeakWrite) {
      // No release in between: one record for both.
      at.lanes |= lanes;
      at.tick = now.order.now();
      at.statement = now.statement;
      merged = i;
      continue;
    }
    if ((at.bytes & bytes) == 0 || !covers(now.mark, at.mark)) continue;
    const bool gone =
        now.mark == Mark::WeakWrite || (!at.pending && unordered(now, lanes, at) == 0);
    if (gone) at.bytes = static_cast<std::uint8_t>(at.bytes & ~bytes);
  }
  if (merged != records.size()) {
    // In the order of their last accesses.
    std::rotate(records.begin() + static_cast<std::ptrdiff_t>(merged),
                records.begin() + static_cast<std::ptrdiff_t>(merged) + 1, records.end());
  }
  const bool done = merged != records.size();
  std::erase_if(records, [](const Record& at) { return at.bytes == 0; });
  if (done) return;
  if (records.size() >= kMax) records.erase(records.begin());
  Record result;
  result.lanes = lanes;
  result.tick = now.order.now();
  result.statement = now.statement;
  result.warp = static_cast<std::uint8_t>(now.warp);
  result.block = static_cast<std::uint8_t>(now.block);
  result.bytes = bytes;
  result.mark = now.mark;
  result.pending = now.pending;
  result.atomic = atomic;
  result.unit = now.unit;
  records.push_back(result);
}

// Reports.

bool SharedRaces::wrote_already(const Now& now, std::uint32_t granule, std::uint32_t lane,
                                std::uint8_t bytes, const Record& other,
                                std::uint32_t other_lane) const {
  if (!is_write(now.mark) || !is_write(other.mark) || other.warp != now.warp ||
      other.block != now.block || other.statement != now.statement || other_lane >= lane ||
      (now.access.mask >> other_lane & 1u) == 0) {
    return false;
  }
  const std::uint64_t low = std::uint64_t{granule} * 4 + std::uint64_t(std::countr_zero(bytes));
  return low >= now.access.addresses[other_lane] &&
         low - now.access.addresses[other_lane] < now.access.bytes;
}

bool SharedRaces::same_value(const Now& now, std::uint32_t granule, std::uint32_t lane,
                             std::uint8_t bytes, const Record& other, std::uint32_t other_lane,
                             bool same_access) const {
  if (now.mark != Mark::WeakWrite || !is_write(other.mark) || other.pending || now.pending ||
      now.access.values == nullptr || now.block != rank_) {
    return false;
  }
  const std::byte* self = now.access.values + std::size_t{lane} * now.access.value_stride;
  const std::byte* theirs = now.access.values + std::size_t{other_lane} * now.access.value_stride;
  for (std::uint32_t i = 0; i < 4; ++i) {
    if ((bytes >> i & 1u) == 0) continue;
    const std::uint64_t at = std::uint64_t{granule} * 4 + i;
    const std::byte* there = same_access ? theirs + (at - now.access.addresses[other_lane])
                                         : sink_->content(now.context, true, at);
    if (there == nullptr || *there != self[at - now.access.addresses[lane]]) return false;
  }
  return true;
}

void SharedRaces::report(Now& now, std::uint32_t granule, std::uint32_t lane, std::uint8_t bytes,
                         const Record& other, std::uint32_t other_lane) {
  const bool same_access = wrote_already(now, granule, lane, bytes, other, other_lane);
  const bool note = same_value(now, granule, lane, bytes, other, other_lane, same_access);
  // Once for a lane and a statement, not for each word of a vector.
  if (!note && now.reported_lane == lane && now.reported_statement == other.statement) return;
  if (!note) {
    now.reported_lane = lane;
    now.reported_statement = other.statement;
  }
  Conflict conflict;
  conflict.rule = note ? Rule::RaceSameValue : Rule::SharedRace;
  conflict.shared = true;
  conflict.lane = lane;
  conflict.bytes = now.access.bytes;
  conflict.address = now.access.addresses[lane];
  conflict.own = now.mark;
  conflict.theirs = other.mark;
  conflict.mixed = is_strong(now.mark) && is_strong(other.mark);
  conflict.async = other.pending || now.pending;
  conflict.bulk = other.warp == order_.engine() && other.block == rank_;
  conflict.matrix = (conflict.bulk || other.pending) && other.mark == Mark::WeakRead &&
                    !matrix_number_.empty() && matrix_number_[granule] != 0;
  if (conflict.matrix) conflict.bulk = false;
  if (now.block != rank_) conflict.owner = cluster_->blocks[rank_];
  conflict.same_access = same_access;
  conflict.same_block = other.block == now.block;
  conflict.same_warp = conflict.same_block && other.warp == now.warp;
  conflict.same_thread = conflict.same_warp && other_lane == lane;
  conflict.other.statement = other.statement;
  conflict.other.cta =
      conflict.same_block ? now.context.cta->linear : cluster_->blocks[other.block]->linear;
  conflict.other.thread = thread_of(other.warp, other_lane);
  if (conflict.bulk || (conflict.matrix && !other.pending))
    conflict.other.thread = bulk_threads_[other.statement];
  sink_->found(now.context, now.statement, conflict);
}

// Order.

void SharedRaces::barrier_arrive(Context& context, std::uint32_t id, std::uint32_t lanes,
                                 bool wait) {
  const SyncObjects::Party who = party(context, kNoIndex);
  sync().take_effect(who, lanes, ptx::Modifier::none);
  order_.barrier_arrive(context.warp->index, id, lanes, wait);
}

void SharedRaces::barrier_complete(Cta& cta, std::uint32_t id) { order_.barrier_complete(cta, id); }

void SharedRaces::warp_sync(Context& context, std::uint32_t lanes) {
  order_.warp_sync(context.warp->index, lanes, context.warp->exited);
}

void SharedRaces::fence(Context& context, std::uint32_t lanes, ptx::Modifier order,
                        ptx::Modifier scope, std::uint32_t statement) {
  sync().fence(party(context, statement), lanes, order, scope);
}

void SharedRaces::complete_copy(const Pending& pending, std::uint32_t warp) {
  Stamp& written = written_[pending.granule];
  if (written == kSlow) {
    Records& records = records_[reader_warps_[pending.granule]];
    Records done;
    for (Record& at : records) {
      if (!at.pending || at.warp != warp || at.block != rank_ ||
          (at.lanes >> pending.lane & 1u) == 0)
        continue;
      Record result = at;
      result.lanes = 1u << pending.lane;
      result.tick = order_.now();
      result.pending = false;
      done.push_back(result);
      at.lanes &= ~result.lanes;
    }
    std::erase_if(records, [](const Record& at) { return at.lanes == 0; });
    records.insert(records.end(), done.begin(), done.end());
    return;
  }
  const auto bits = static_cast<std::uint32_t>(written);
  const std::uint32_t code = bits >> 10 & 3u;
  if (bits >> 12 != kPendingTick || (bits >> 5 & 31u) != warp) return;
  if (code != 0) {
    expand(pending.granule);
    return complete_copy(pending, warp);
  }
  if ((bits & 31u) == pending.lane) written = stamp(order_.now(), bits & 0xfffu);
}

void SharedRaces::async_complete(Context& context, std::uint32_t lanes, std::uint64_t through) {
  const std::uint32_t warp = context.warp->index;
  if (order_.now() >= kLastTick) rebase();
  std::erase_if(pending_[warp], [&](const Pending& at) {
    if ((lanes >> at.lane & 1u) == 0 || at.ticket > through) return false;
    complete_copy(at, warp);
    return true;
  });
}

void SharedRaces::restart(const Cta& cta) {
  if (order_.now() >= kLastTick) rebase();
  for (std::size_t warp = 0; warp < pending_.size(); ++warp) {
    for (const Pending& at : pending_[warp]) complete_copy(at, static_cast<std::uint32_t>(warp));
    pending_[warp].clear();
  }
  for (const BulkWrite& at : bulk_) finish_bulk(at, order_.now(), 0, 0);
  bulk_.clear();
  order_.restart(cta);
  sync_.clear();
  lane_sync_.clear();
  lane_sync_.resize(cta.warps.size());
  pending_.resize(cta.warps.size());
  forget_matrices();
  cluster_floor_ = order_.floor();
  arrivals_ = {};
  visits_.clear();
}

void SharedRaces::rebase() {
  if (cluster_ != nullptr) return forget_cluster();
  const Tick now = order_.now();
  const Tick by = std::max(order_.floor(), now - kKeptTicks);
  const auto shift = [by](Tick tick) { return tick > by ? tick - by : 0; };
  order_.rebase(by);
  sync_.rebase(by, lane_sync_);
  fenced_.rebase(by);
  first_tick_ = shift(first_tick_);
  for (Stamp& at : written_) {
    const auto bits = static_cast<std::uint32_t>(at);
    if (bits >> 12 >= kPendingTick) continue;
    at = stamp(shift(bits >> 12), bits & 0xfffu);
  }
  for (std::uint32_t& at : read_) at = shift(at >> 2) << 2 | (at & 3u);
  for (std::vector<std::uint32_t>& times : reader_times_) {
    for (std::uint32_t& at : times) at = shift(at >> 1) << 1 | (at & 1u);
  }
  for (Records& records : records_) {
    for (Record& at : records) at.tick = shift(at.tick);
  }
}

void SharedRaces::skip_time(Tick ticks) {
  for (; ticks != 0; --ticks) order_.advance(0);
}

std::uint64_t SharedRaces::overhead_bytes() const noexcept {
  std::uint64_t bytes = written_.capacity() * (sizeof(Stamp) + 5 * sizeof(std::uint32_t));
  for (const Records& records : records_) bytes += records.capacity() * sizeof(Record);
  for (const auto* readers : {&reader_times_, &reader_statements_}) {
    for (const auto& of_warp : *readers) bytes += of_warp.capacity() * sizeof(std::uint32_t);
  }
  return bytes + sync_.bytes();
}

}  // namespace ptxgen::inline v0::emulator
