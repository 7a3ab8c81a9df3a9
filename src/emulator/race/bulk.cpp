// src/emulator/race/bulk.cpp - races of bulk copies with threads
#include <algorithm>

#include "emulator/race/shared.hpp"

namespace ptxgen::inline v0::emulator {

void SharedRaces::bulk_write(Context& issuer, const BulkWrite& write) {
  if (write.bytes == 0) return;
  SharedRaces& actor = of(issuer);
  if (actor.order_.now() >= kLastTick) actor.rebase();
  std::uint64_t addresses[kLanes] = {};
  RaceAccess access;
  access.kind = RaceAccess::Kind::AsyncWrite;
  access.mask = 1u << write.lane;
  access.bytes = 4;
  access.addresses = addresses;
  Now now{issuer, write.statement, access,      write.warp, Mark::WeakWrite,
          true,   actor.order_,    actor.rank_, 4,          true};
  const bool own = &actor == this;
  const Stamp self = stamp(kPendingTick, thread_of(write.warp, write.lane));
  const Stamp old = stamp(order_.floor() + 1, 0);
  const std::uint32_t read_old = (order_.floor() + 1) << 2;
  const auto first = static_cast<std::uint32_t>(write.offset / 4);
  const auto last = static_cast<std::uint32_t>((write.offset + write.bytes) / 4);
  for (std::uint32_t i = first; i < last; ++i) {
    addresses[write.lane] = std::uint64_t{i} * 4;
    if (!matrix_reads_.empty()) check_matrices(now, addresses[write.lane], 4, write.lane);
    if (written_[i] == kSlow || !own) {
      slow(now, i, access.mask, 0xf);
    } else if (written_[i] < old && read_[i] < read_old) {
      written_[i] = self;
      write_statement_[i] = write.statement;
      read_[i] = 0;
    } else {
      write_granule(now, i, write.lane);
    }
  }
  bulk_.push_back(write);
  bulk_threads_[write.statement] = thread_of(write.warp, write.lane);
}

void SharedRaces::finish_bulk(const BulkWrite& write, Tick tick, std::uint32_t warp,
                              std::uint32_t lane) {
  const Stamp theirs = stamp(kPendingTick, thread_of(write.warp, write.lane));
  const Stamp done = stamp(tick, thread_of(warp, lane));
  const auto first = static_cast<std::uint32_t>(write.offset / 4);
  const auto last = static_cast<std::uint32_t>((write.offset + write.bytes) / 4);
  for (std::uint32_t i = first; i < last; ++i) {
    if (written_[i] == theirs && write_statement_[i] == write.statement) {
      written_[i] = done;
    } else if (written_[i] == kSlow) {
      for (Record& at : records_[reader_warps_[i]]) {
        if (!at.pending || at.block != write.issuer->rank || at.warp != write.warp ||
            at.lanes != 1u << write.lane || at.statement != write.statement) {
          continue;
        }
        at.block = static_cast<std::uint8_t>(rank_);
        at.pending = false;
        at.tick = tick;
        at.warp = static_cast<std::uint8_t>(warp);
        at.lanes = 1u << lane;
      }
      simplify(i);
    }
  }
}

void SharedRaces::bulk_observed(Context& context, std::uint32_t lane, const BulkWrite& write,
                                std::uint64_t object) {
  if (order_.now() >= kLastTick) rebase();
  const auto same = std::ranges::find_if(bulk_, [&](const BulkWrite& at) {
    return at.offset == write.offset && at.bytes == write.bytes &&
           at.statement == write.statement && at.issuer == write.issuer && at.warp == write.warp &&
           at.lane == write.lane;
  });
  if (same != bulk_.end()) bulk_.erase(same);
  // A block of 32 warps leaves no warp number for the copy engine: treat the bytes as written by
  // the thread that observed the end.
  const bool has_warp = order_.engine() < kLanes;
  const std::uint32_t warp = has_warp ? order_.engine() : context.warp->index;
  const std::uint32_t by = has_warp ? 0 : lane;
  finish_bulk(write, order_.now(), warp, by);
  sync().release_access(order_, warp, 1u << by, order_.now(), object | tag_of(context.cta));
  order_.advance(warp);
}

}  // namespace ptxgen::inline v0::emulator
