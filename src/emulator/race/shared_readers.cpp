// src/emulator/race/shared_readers.cpp - weak reads of shared memory by many threads
#include <algorithm>

#include "emulator/race/shared.hpp"

namespace ptxgen::inline v0::emulator {

// Readers at different times. While no warp is ordered after others, except by barriers of the
// whole block, a reader never replaces a reader of another warp: the cell keeps one set of lanes,
// and a tick and a statement for each warp.

bool SharedRaces::can_join(const Now& now) const noexcept {
  return cluster_ == nullptr && now.mark == Mark::WeakRead && !now.pending && now.unit == 4 &&
         order_.warps_apart() && order_.is_whole(now.warp);
}

SharedRaces::Joining SharedRaces::joining(const Now& now) {
  std::uint32_t* const times = of_warp(reader_times_, now.warp);
  return {now.warp,
          now.statement,
          order_.now(),
          order_.floor(),
          order_.released(now.warp),
          order_.together(now.warp),
          times,
          of_warp(reader_statements_, now.warp)};
}

std::uint32_t* SharedRaces::of_warp(std::vector<std::vector<std::uint32_t>>& all,
                                    std::uint32_t warp) {
  all.resize(order_.engine());
  all[warp].resize(written_.size());
  return all[warp].data();
}

SharedRaces::Joining::How SharedRaces::how_to_join(const Joining& who, std::uint32_t i,
                                                   std::uint32_t lanes) const {
  const Tick tick = read_[i] >> 2;
  const std::uint32_t code = read_[i] & 3u;
  const std::uint32_t warps = reader_warps_[i];
  const std::uint32_t warp_bit = 1u << who.warp;
  if (tick <= who.floor || (code == 0 && warps == warp_bit && tick <= who.together)) {
    return Joining::How::Begins;
  }
  if (reader_lanes_[i] != lanes) return Joining::How::Not;
  if (code == 0 && unreleased(warps, tick)) return Joining::How::SameTime;
  if (code == 0) {
    const bool repeats = (warps & warp_bit) != 0 && tick > who.together;
    return repeats ? Joining::How::Not : Joining::How::OtherTime;
  }
  // Records are in the order of accesses; times alone do not tell that of a later warp.
  const bool overtakes = tick == who.now && warps >> who.warp > 1;
  if (code != kManyTimes || overtakes) return Joining::How::Not;
  return (warps & warp_bit) == 0 || who.may_repeat(who.times[i]) ? Joining::How::OtherTime
                                                                 : Joining::How::Not;
}

/// Gives each reader a time of its own.
void SharedRaces::separate(std::uint32_t granule) {
  const Tick tick = read_[granule] >> 2;
  for_each_lane(reader_warps_[granule], [&](unsigned warp) {
    of_warp(reader_times_, warp)[granule] = tick << 1;
    of_warp(reader_statements_, warp)[granule] = read_statement_[granule];
  });
}

void SharedRaces::join(const Joining& who, std::uint32_t i, std::uint32_t lanes, Joining::How how) {
  const std::uint32_t warp_bit = 1u << who.warp;
  std::uint32_t code = 0;
  if (how == Joining::How::OtherTime) {
    if ((read_[i] & 3u) != kManyTimes) separate(i);
    who.times[i] = who.now << 1 | 1u;
    who.statements[i] = who.statement;
    code = kManyTimes;
  }
  reader_warps_[i] = how == Joining::How::Begins ? warp_bit : reader_warps_[i] | warp_bit;
  reader_lanes_[i] = lanes;
  read_[i] = who.now << 2 | code;
  read_statement_[i] = who.statement;
}

bool SharedRaces::join_all(const Joining& who, std::uint32_t first, std::uint32_t count,
                           const std::uint32_t* lanes, std::uint32_t step) {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (how_to_join(who, first + i, lanes[i * step]) == Joining::How::Not) return false;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    join(who, first + i, lanes[i * step], how_to_join(who, first + i, lanes[i * step]));
  }
  return true;
}

bool SharedRaces::join_run(const Now& now, std::uint32_t first, std::uint32_t count,
                           const RunTable& table) {
  const Joining who = joining(now);
  std::uint32_t* const read = read_.data() + first;
  std::uint32_t* const warps = reader_warps_.data() + first;
  std::uint32_t* const lanes = reader_lanes_.data() + first;
  std::uint32_t* const statements = read_statement_.data() + first;
  std::uint32_t* const times = who.times + first;
  const std::uint32_t before = read[0];
  const std::uint32_t warps_before = warps[0];
  // Usually all granules have the same readers, each at the same time.
  std::uint32_t differs = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    differs |= (read[i] ^ before) | (warps[i] ^ warps_before) | (lanes[i] ^ table.lanes[i]);
  }
  if (differs != 0) return join_all(who, first, count, table.lanes.data(), 1);
  const Joining::How how = how_to_join(who, first, table.lanes[0]);
  if (how == Joining::How::Not) return false;
  std::uint32_t tick = who.now << 2;
  if (how == Joining::How::OtherTime) {
    tick |= kManyTimes;
    if ((before & 3u) != kManyTimes) {
      for (std::uint32_t i = 0; i < count; ++i) separate(first + i);
    } else if ((warps_before >> who.warp & 1u) != 0) {
      bool allowed = true;
      for (std::uint32_t i = 0; i < count; ++i) allowed &= who.may_repeat(times[i]);
      if (!allowed) return false;
    }
    std::fill_n(times, count, who.now << 1 | 1u);
    std::fill_n(who.statements + first, count, who.statement);
  }
  std::fill_n(read, count, tick);
  std::fill_n(warps, count, 1u << who.warp | (how == Joining::How::Begins ? 0u : warps_before));
  std::fill_n(statements, count, who.statement);
  return true;
}

void SharedRaces::add_readers(std::uint32_t granule, Records& records) const {
  const auto begin = static_cast<std::ptrdiff_t>(records.size());
  for_each_lane(reader_warps_[granule], [&](unsigned warp) {
    const std::uint32_t time = reader_times_[warp][granule];
    if (time >> 1 <= forgotten(rank_)) return;
    Record record;
    record.lanes = reader_lanes_[granule];
    record.tick = time >> 1;
    record.statement = reader_statements_[warp][granule];
    record.warp = static_cast<std::uint8_t>(warp);
    record.block = static_cast<std::uint8_t>(rank_);
    record.bytes = 0xf;
    record.mark = Mark::WeakRead;
    record.unit = (time & 1u) != 0 ? 4 : 0;
    records.push_back(record);
  });
  std::stable_sort(records.begin() + begin, records.end(),
                   [](const Record& a, const Record& b) { return a.tick < b.tick; });
}

// Reads of single lanes and of groups of lanes.

/// Weak reads of full granules whose last write is ordered before by a barrier or was the warp's
/// own: what `range` does in that case.
class SharedRaces::FullReads {
 public:
  FullReads(SharedRaces& races, const Now& now)
      : races_(races),
        warp_bit_(1u << now.warp),
        warp_part_(static_cast<Stamp>(now.warp << 5)),
        old_(stamp(races.order_.floor() + 1, 0)),
        warp_old_(stamp(races.order_.together(now.warp) + 1, 0)),
        read_old_((races.order_.floor() + 1) << 2),
        read_warp_old_((races.order_.together(now.warp) + 1) << 2),
        unreleased_((races.order_.last_release() + 1) << 2),
        tick_(races.order_.now() << 2),
        statement_(now.statement) {
    if (races.can_join(now)) joining_ = races.joining(now);
  }

  /// False, with nothing changed, in other cases.
  [[nodiscard]] bool read(std::uint32_t first, std::uint32_t count, std::uint32_t lanes) {
    for (std::uint32_t i = first; i < first + count; ++i) {
      if (!is_ordered(i)) return false;
      if (!starts(i) && !adds(i, lanes) && how_to_join(i, lanes) == How::Not) return false;
    }
    for (std::uint32_t i = first; i < first + count; ++i) note(i, lanes);
    return true;
  }

 private:
  using How = Joining::How;

  [[nodiscard]] How how_to_join(std::uint32_t i, std::uint32_t lanes) const {
    return joining_ ? races_.how_to_join(*joining_, i, lanes) : How::Not;
  }
  [[nodiscard]] bool is_ordered(std::uint32_t i) const {
    const Stamp w = races_.written_[i];
    return w < old_ || ((w & (31 << 5)) == warp_part_ && w < warp_old_);
  }
  /// Whether the reads so far are forgotten.
  [[nodiscard]] bool starts(std::uint32_t i) const {
    const std::uint32_t read = races_.read_[i];
    return read < read_old_ || (races_.reader_warps_[i] == warp_bit_ && read < read_warp_old_);
  }
  /// Whether another reader can be added to them, at the same time.
  [[nodiscard]] bool adds(std::uint32_t i, std::uint32_t lanes) const {
    const std::uint32_t read = races_.read_[i];
    return (read & 3u) == 0 && read >= unreleased_ &&
           (races_.reader_warps_[i] == warp_bit_ || races_.reader_lanes_[i] == lanes);
  }
  void note(std::uint32_t i, std::uint32_t lanes) {
    std::uint32_t& warps = races_.reader_warps_[i];
    if (starts(i)) {
      warps = warp_bit_;
      races_.reader_lanes_[i] = lanes;
    } else if (!adds(i, lanes)) {
      return races_.join(*joining_, i, lanes, how_to_join(i, lanes));
    } else if (warps == warp_bit_) {
      races_.reader_lanes_[i] |= lanes;
    } else {
      warps |= warp_bit_;
    }
    races_.read_[i] = tick_;
    races_.read_statement_[i] = statement_;
  }

  SharedRaces& races_;
  std::uint32_t warp_bit_;
  Stamp warp_part_;
  Stamp old_;
  Stamp warp_old_;
  std::uint32_t read_old_;
  std::uint32_t read_warp_old_;
  std::uint32_t unreleased_;
  std::uint32_t tick_;
  std::uint32_t statement_;
  std::optional<Joining> joining_;
};

/// The granules of groups of lanes, which are disjoint.
struct SharedRaces::GroupedRead {
  const AddressGroups& groups;
  std::uint32_t width = 0;  ///< granules of a group
  std::array<std::uint32_t, kLanes> first{};

  /// False if the accesses are not aligned, or not inside `limit`.
  [[nodiscard]] bool locate(std::uint64_t bytes, std::uint64_t limit) {
    if ((bytes & 3u) != 0) return false;
    width = static_cast<std::uint32_t>(bytes / 4);
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    for (std::uint32_t i = 0; i < groups.count; ++i) {
      low |= groups.address[i];
      high = std::max(high, groups.address[i]);
      first[i] = static_cast<std::uint32_t>(groups.address[i] / 4);
    }
    return low % bytes == 0 && high < limit && bytes <= limit - high;
  }
  /// Calls `f(granule, lanes)`.
  template <class F>
  void each(F&& f) const {
    for (std::uint32_t part = 0; part < width; ++part) {
      for (std::uint32_t i = 0; i < groups.count; ++i) f(first[i] + part, groups.lanes[i]);
    }
  }
};

/// Groups of lanes read granules of their own, of which the last writes are ordered before. Either
/// the readers so far are forgotten, or all granules have the same ones, each at the same time: the
/// common cases. False, with nothing changed, in others.
bool SharedRaces::read_groups(const Now& now, const AddressGroups& groups) {
  GroupedRead access{groups};
  if (!access.locate(now.access.bytes, bytes_)) return false;
  const auto warp_part = static_cast<Stamp>(now.warp << 5);
  const Stamp old = stamp(order_.floor() + 1, 0);
  const Stamp warp_old = stamp(order_.together(now.warp) + 1, 0);
  const std::uint32_t read_old = (order_.floor() + 1) << 2;
  bool other = false;
  bool readers = false;
  access.each([&](std::uint32_t i, std::uint32_t) {
    const Stamp w = written_[i];
    const bool synced = ((w & (31 << 5)) == warp_part) & (w < warp_old);
    other |= !((w < old) | synced);
    readers |= read_[i] >= read_old;
  });
  if (other) return false;
  if (readers) return can_join(now) && join_groups(joining(now), access);
  const std::uint32_t tick = order_.now() << 2;
  const std::uint32_t warp_bit = 1u << now.warp;
  access.each([&](std::uint32_t i, std::uint32_t lanes) {
    read_[i] = tick;
    reader_warps_[i] = warp_bit;
    reader_lanes_[i] = lanes;
    read_statement_[i] = now.statement;
  });
  return true;
}

bool SharedRaces::join_groups(const Joining& who, const GroupedRead& access) {
  const std::uint32_t at = access.first[0];
  const std::uint32_t before = read_[at];
  const std::uint32_t warps_before = reader_warps_[at];
  const std::uint32_t warp_bit = 1u << who.warp;
  std::uint32_t differs = 0;
  access.each([&](std::uint32_t i, std::uint32_t lanes) {
    differs |= (read_[i] ^ before) | (reader_warps_[i] ^ warps_before) | (reader_lanes_[i] ^ lanes);
  });
  if (differs != 0) return false;
  const Joining::How how = how_to_join(who, at, access.groups.lanes[0]);
  if (how == Joining::How::Not) return false;
  const bool with_times = how == Joining::How::OtherTime;
  if (with_times && (before & 3u) == kManyTimes && (warps_before & warp_bit) != 0) {
    bool allowed = true;
    access.each([&](std::uint32_t i, std::uint32_t) { allowed &= who.may_repeat(who.times[i]); });
    if (!allowed) return false;
  }
  if (with_times) {
    const bool together = (before & 3u) != kManyTimes;
    access.each([&](std::uint32_t i, std::uint32_t) {
      if (together) separate(i);
      who.times[i] = who.now << 1 | 1u;
      who.statements[i] = who.statement;
    });
  }
  const std::uint32_t tick = who.now << 2 | (with_times ? kManyTimes : 0u);
  const std::uint32_t warps = how == Joining::How::Begins ? warp_bit : warps_before | warp_bit;
  access.each([&](std::uint32_t i, std::uint32_t) {
    read_[i] = tick;
    reader_warps_[i] = warps;
    read_statement_[i] = who.statement;
  });
  return true;
}

void SharedRaces::by_address(Now& now) {
  // Lanes that read or atomically update the same bytes count as one access.
  const AddressGroups groups = group_by_address(now.access);
  const std::uint64_t bytes = now.access.bytes;
  std::optional<FullReads> reads;
  if (now.mark == Mark::WeakRead && !now.pending && now.block == rank_ && bytes % 4 == 0) {
    if (read_groups(now, groups)) return;
    reads.emplace(*this, now);
  }
  for (std::uint32_t i = 0; i < groups.count; ++i) {
    const std::uint64_t address = groups.address[i];
    if (reads && address % 4 == 0 && address < bytes_ && bytes <= bytes_ - address &&
        reads->read(static_cast<std::uint32_t>(address / 4), static_cast<std::uint32_t>(bytes / 4),
                    groups.lanes[i])) {
      continue;
    }
    range(now, groups.lanes[i], address);
  }
}

}  // namespace ptxgen::inline v0::emulator
