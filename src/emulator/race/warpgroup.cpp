// src/emulator/race/warpgroup.cpp - races of wgmma with threads and copies
#include <algorithm>

#include "emulator/race/shared.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

constexpr std::uint32_t kPieceGranules = 4;  ///< of 16 bytes

}  // namespace

/// The warp reads a granule as a whole: one lane that is ordered after the write is enough.
void SharedRaces::check_issue(Now& now, std::uint32_t granule, std::uint32_t& ordered) {
  const std::uint32_t lanes = now.access.mask;
  const auto first = static_cast<std::uint32_t>(std::countr_zero(lanes));
  const auto check = [&](const Record& at) {
    if (!is_write(at.mark)) return true;
    if (!at.pending && (at.tick <= forgotten(at.block) || unordered(now, lanes, at) != lanes)) {
      return true;
    }
    const std::uint32_t who = at.pending ? at.lanes : unordered_with(now, first, at);
    report(now, granule, first, 0xf, at, static_cast<std::uint32_t>(std::countr_zero(who)));
    return false;
  };
  const Stamp last = written_[granule];
  if (last == kSlow) {
    for (const Record& at : records_[reader_warps_[granule]]) check(at);
    return;
  }
  const auto bits = static_cast<std::uint32_t>(last);
  if (bits == ordered || bits >> 12 <= order_.floor()) return;
  const std::uint32_t code = bits >> 10 & 3u;
  Record other;
  other.block = static_cast<std::uint8_t>(rank_);
  other.warp = static_cast<std::uint8_t>(bits >> 5 & 31u);
  other.lanes = (code == 0 ? 1u : code == 1 ? 3u : 15u) << (bits & 31u);
  other.tick = bits >> 12;
  other.statement = write_statement_[granule];
  other.bytes = 0xf;
  other.mark = Mark::WeakWrite;
  other.pending = other.tick == kPendingTick;
  if (check(other)) ordered = bits;
}

std::uint32_t SharedRaces::matrix_issue(Context& context, std::uint32_t statement,
                                        std::span<const std::uint32_t> pieces,
                                        std::uint64_t number) {
  if (order_.now() >= kLastTick) rebase();
  std::uint64_t addresses[kLanes] = {};
  RaceAccess access;
  access.kind = RaceAccess::Kind::Read;
  access.mask = context.active;
  access.bytes = 16;
  access.addresses = addresses;
  Now now{context, statement, access, context.warp->index, Mark::WeakRead, false, order_, rank_};
  const auto first = static_cast<std::uint32_t>(std::countr_zero(access.mask | 1u << 31));
  if (matrix_number_.empty()) matrix_number_.resize(written_.size());
  std::uint32_t ordered = 0;
  for (const std::uint32_t piece : pieces) {
    addresses[first] = piece;
    for (std::uint32_t i = 0; i < kPieceGranules; ++i) {
      const std::uint32_t granule = piece / 4 + i;
      check_issue(now, granule, ordered);
      matrix_number_[granule] = number;
    }
  }
  const bool known =
      std::ranges::any_of(matrix_reads_, [&](const MatrixRead& at) { return at.number == number; });
  if (!known) {
    matrix_reads_.push_back({number, statement, thread_of(context.warp->index, first)});
  }
  return unfenced_store(context, pieces);
}

void SharedRaces::record_engine_read(const Now& now, std::uint32_t granule, std::uint32_t warp,
                                     std::uint32_t lane) {
  const bool simple = written_[granule] != kSlow && !has_many_times(granule) &&
                      (read_[granule] >> 2 <= order_.floor() ||
                       (reader_warps_[granule] == 1u << warp && (read_[granule] & 3u) == 0));
  if (simple) {
    reader_warps_[granule] = 1u << warp;
    reader_lanes_[granule] = 1u << lane;
    read_[granule] = order_.now() << 2;
    read_statement_[granule] = now.statement;
    return;
  }
  Records& records = expand(granule);
  std::erase_if(records, [&](const Record& at) {
    return !at.pending &&
           (at.tick <= forgotten(at.block) || (at.mark == Mark::WeakRead && at.warp == warp &&
                                               at.lanes == 1u << lane && at.block == rank_));
  });
  Record record;
  record.lanes = 1u << lane;
  record.tick = order_.now();
  record.statement = now.statement;
  record.warp = static_cast<std::uint8_t>(warp);
  record.block = static_cast<std::uint8_t>(rank_);
  record.bytes = 0xf;
  record.mark = Mark::WeakRead;
  records.push_back(record);
  simplify(granule);
}

void SharedRaces::matrix_read(Context& context, std::uint32_t statement,
                              std::span<const std::uint32_t> pieces, std::uint64_t number,
                              std::uint64_t object) {
  if (order_.now() >= kLastTick) rebase();
  const auto read = std::ranges::find(matrix_reads_, number, &MatrixRead::number);
  if (read != matrix_reads_.end()) {
    bulk_threads_[statement] = read->thread;
    matrix_reads_.erase(read);
  }
  // As for bulk copies: the copy engine reads, unless its warp number does not exist.
  const bool separate = order_.engine() < kLanes;
  const std::uint32_t warp = separate ? order_.engine() : context.warp->index;
  const auto lane =
      separate ? 0 : static_cast<std::uint32_t>(std::countr_zero(context.active | 1u << 31));
  RaceAccess access;
  Now now{context, statement, access, warp, Mark::WeakRead, false, order_, rank_};
  for (const std::uint32_t piece : pieces) {
    for (std::uint32_t i = 0; i < kPieceGranules; ++i) {
      record_engine_read(now, piece / 4 + i, warp, lane);
    }
  }
  sync().release_access(order_, warp, 1u << lane, order_.now(), object | tag_of(context.cta));
  order_.advance(warp);
}

/// A write to bytes that a wgmma in flight reads.
void SharedRaces::check_matrices(Now& now, std::uint64_t address, std::uint64_t bytes,
                                 std::uint32_t lane) {
  if (address >= bytes_ || bytes > bytes_ - address) return;
  for (std::uint64_t granule = address / 4; granule * 4 < address + bytes; ++granule) {
    const std::uint64_t number = matrix_number_[granule];
    if (number == 0) continue;
    const auto read = std::ranges::find(matrix_reads_, number, &MatrixRead::number);
    if (read == matrix_reads_.end()) continue;
    Record other;
    other.block = static_cast<std::uint8_t>(rank_);
    other.warp = static_cast<std::uint8_t>(read->thread / kLanes);
    other.lanes = 1u << read->thread % kLanes;
    other.statement = read->statement;
    other.mark = Mark::WeakRead;
    other.pending = true;
    report(now, static_cast<std::uint32_t>(granule), lane, 0xf, other, read->thread % kLanes);
  }
}

void SharedRaces::check_matrices(Now& now) {
  for_each_lane(now.access.mask, [&](unsigned lane) {
    check_matrices(now, now.access.addresses[lane], now.access.bytes, lane);
  });
}

void SharedRaces::forget_matrices() {
  matrix_reads_.clear();
  std::ranges::fill(matrix_number_, std::uint64_t{0});
  fenced_.clear();
  first_tick_ = order_.now();
}

void SharedRaces::proxy_fence(Context& context, std::uint32_t lanes) {
  if (order_.now() >= kLastTick) rebase();
  const std::uint32_t warp = context.warp->index;
  for_each_lane(
      lanes, [&](unsigned lane) { fenced_.join(order_.known(warp, lane), order_.warp_lanes()); });
  fenced_.raise_floor(order_.floor());
  fenced_.add(warp, lanes, order_.now(), order_.warp_lanes());
  order_.advance(warp);
}

std::uint32_t SharedRaces::unfenced_store(Context&, std::span<const std::uint32_t> pieces) {
  if (order_.engine() >= kLanes) return kNoIndex;  // copies are not told apart from stores
  const auto unfenced = [&](std::uint32_t warp, std::uint32_t lanes, Tick tick) {
    return tick > first_tick_ && tick != kPendingTick && warp != order_.engine() &&
           fenced_.unknown(warp, lanes, tick) != 0;
  };
  // As in check_issue, most granules of a matrix were written by one copy.
  std::uint32_t fenced = 0;
  for (const std::uint32_t piece : pieces) {
    for (std::uint32_t granule = piece / 4; granule < piece / 4 + kPieceGranules; ++granule) {
      if (written_[granule] == kSlow) {
        for (const Record& at : records_[reader_warps_[granule]]) {
          if (is_write(at.mark) && !at.pending && at.block == rank_ &&
              unfenced(at.warp, at.lanes, at.tick)) {
            return at.statement;
          }
        }
        continue;
      }
      const auto bits = static_cast<std::uint32_t>(written_[granule]);
      if (bits == fenced) continue;
      const std::uint32_t code = bits >> 10 & 3u;
      const std::uint32_t lanes = (code == 0 ? 1u : code == 1 ? 3u : 15u) << (bits & 31u);
      if (unfenced(bits >> 5 & 31u, lanes, bits >> 12)) return write_statement_[granule];
      fenced = bits;
    }
  }
  return kNoIndex;
}

}  // namespace ptxgen::inline v0::emulator
