// src/emulator/memory/async.cpp - cp.async and its groups
#include "emulator/memory/async.hpp"

#include <algorithm>
#include <cstring>

#include "emulator/memory/access.hpp"
#include "emulator/memory/steps.hpp"
#include "emulator/memory/written_bits.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// `through`: the latest ticket of each lane's finished copies. A lane's copies end in the order in
/// which they began.
void tell_races(Context& context, std::uint32_t lanes,
                const std::array<std::uint64_t, kLanes>& through) {
  if (!context.cta->races && !context.grid->races) return;
  while (lanes != 0) {
    const std::uint64_t ticket = through[static_cast<unsigned>(std::countr_zero(lanes))];
    std::uint32_t same = 0;
    for_each_lane(lanes, [&](unsigned lane) {
      if (through[lane] == ticket) same |= 1u << lane;
    });
    lanes &= ~same;
    if (context.cta->races) context.cta->races->async_complete(context, same, ticket);
    if (context.grid->races) context.grid->races->async_complete(context, same, ticket);
  }
}

}  // namespace

AsyncCopies& AsyncCopies::of(Context& context) {
  Cta& cta = *context.cta;
  if (cta.async == nullptr) cta.async = std::make_shared<AsyncCopies>();
  AsyncCopies& copies = *cta.async;
  // One object serves all blocks that run in this place, one after another.
  if (copies.order_ != cta.order) {
    copies.order_ = cta.order;
    copies.warps_.assign(cta.warps.size(), {});
  }
  return copies;
}

void AsyncCopies::add(const Warp& warp, const Copy& copy) {
  warps_[warp.index].copies.push_back(copy);
}

void AsyncCopies::commit(const Warp& warp, std::uint32_t lanes) {
  WarpCopies& mine = warps_[warp.index];
  for (Copy& copy : mine.copies) {
    const std::uint32_t now = copy.uncommitted & lanes;
    for_each_lane(now, [&](unsigned lane) { copy.group[lane] = mine.groups[lane]; });
    copy.uncommitted &= ~now;
  }
  for_each_lane(lanes, [&](unsigned lane) { ++mine.groups[lane]; });
}

void AsyncCopies::finish(Context& context, std::uint32_t lanes, std::uint64_t newest, bool all) {
  WarpCopies& mine = warps_[context.warp->index];
  Cta& cta = *context.cta;
  std::array<std::uint64_t, kLanes> through{};
  for (Copy& copy : mine.copies) {
    std::uint32_t now = 0;
    for_each_lane(copy.lanes & lanes, [&](unsigned lane) {
      const bool committed = (copy.uncommitted >> lane & 1u) == 0;
      if (all || (committed && copy.group[lane] + newest < mine.groups[lane])) now |= 1u << lane;
    });
    for_each_lane(now, [&](unsigned lane) {
      through[lane] = std::max(through[lane], copy.ticket);
      std::byte data[16] = {};
      if (copy.from_bytes[lane] != 0) load_bytes(data, copy.from[lane], copy.from_bytes[lane]);
      std::memcpy(cta.shared + copy.to[lane], data, copy.bytes);
      mark_written<false>(cta.shared_written, copy.to[lane], copy.bytes);
    });
    copy.lanes &= ~now;
  }
  std::erase_if(mine.copies, [](const Copy& copy) { return copy.lanes == 0; });
  tell_races(context, lanes, through);
}

void run_copy_async(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  const MemoryDetail& detail = context.code->memory[step.detail];
  std::uint64_t to[32];
  std::uint64_t from[32];
  compute_addresses(context, detail.base, detail.offset, to);
  compute_addresses(context, detail.second_base, detail.second_offset, from);
  AsyncCopies::Copy copy;
  copy.bytes = detail.element_bytes;
  copy.statement = step.statement;
  copy.from_bytes.fill(detail.element_bytes);
  if (!detail.sources.empty()) {
    const Slot& extra = detail.sources[0];
    for_each_lane(mask, [&](unsigned lane) {
      const std::uint64_t value = get_lane(context, extra, lane);
      // `ignore-src` is a predicate; `src-size` beyond the size is undefined, here the size.
      copy.from_bytes[lane] = static_cast<std::uint8_t>(
          extra.lane_bytes == 0 ? (value != 0 ? 0 : detail.element_bytes)
                                : std::min<std::uint64_t>(value, detail.element_bytes));
    });
  }
  AccessRequest write;
  write.space = ptx::Space::Shared;
  write.addresses = to;
  write.mask = mask;
  write.bytes = write.alignment = detail.element_bytes;
  write.writes = true;
  write.mark = false;  // the bytes come later
  write.kind = RaceAccess::Kind::AsyncWrite;
  copy.ticket = write.ticket = AsyncCopies::of(context).new_ticket();
  Reach target;
  reach(context, step, detail, write, target);
  // Lanes by how many bytes they read, nearly always one value for all.
  std::uint32_t left = target.mask;
  for_each_lane(left, [&](unsigned lane) {
    if (copy.from_bytes[lane] == 0) left &= ~(1u << lane);
  });
  copy.lanes = target.mask & ~left;
  while (left != 0) {
    const unsigned bytes = copy.from_bytes[static_cast<unsigned>(std::countr_zero(left))];
    std::uint32_t same = 0;
    for_each_lane(left, [&](unsigned lane) {
      if (copy.from_bytes[lane] == bytes) same |= 1u << lane;
    });
    left &= ~same;
    AccessRequest read;
    read.space = ptx::Space::Global;
    read.addresses = from;
    read.mask = same;
    read.bytes = bytes;
    read.alignment = detail.element_bytes;
    read.reads = true;
    read.kind = RaceAccess::Kind::AsyncRead;
    Reach source;
    reach(context, step, detail, read, source);
    for_each_lane(source.mask, [&](unsigned lane) { copy.from[lane] = source.host[lane]; });
    copy.lanes |= source.mask;
  }
  if (copy.lanes == 0) return;
  for_each_lane(copy.lanes, [&](unsigned lane) {
    copy.to[lane] = static_cast<std::uint32_t>(target.host[lane] - context.cta->shared);
  });
  copy.uncommitted = copy.lanes;
  AsyncCopies::of(context).add(*context.warp, copy);
}

void run_commit_group(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask != 0) AsyncCopies::of(context).commit(*context.warp, mask);
}

void run_wait_group(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  const MemoryDetail& detail = context.code->memory[step.detail];
  const bool all = detail.op == ptx::Op::cp_async_wait_all;
  AsyncCopies::of(context).finish(context, mask, detail.second_offset, all);
}

}  // namespace ptxgen::inline v0::emulator
