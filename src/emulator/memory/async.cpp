// src/emulator/memory/async.cpp - cp.async and its groups
#include "emulator/memory/async.hpp"

#include <algorithm>
#include <cstring>

#include "emulator/memory/access.hpp"
#include "emulator/memory/steps.hpp"
#include "emulator/state/written_bits.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// `through`: the latest ticket of each lane's finished copies, which end in the order of issue.
void notify_races(Context& context, std::uint32_t lanes,
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

/// Bytes that each lane reads: all, or as src-size or ignore-src says.
void read_sizes(const Context& context, const MemoryDetail& detail, std::uint32_t mask,
                AsyncCopies::Copy& copy) {
  copy.from_bytes.fill(detail.element_bytes);
  if (detail.sources.empty()) return;
  const Slot& operand = detail.sources[0];
  const bool ignores = operand.lane_bytes == 0;
  for_each_lane(mask, [&](unsigned lane) {
    const std::uint64_t value = get_lane(context, operand, lane);
    // A src-size larger than the copy is undefined; the emulator reads the size of the copy.
    const std::uint64_t bytes = ignores && value != 0 ? 0
                                : ignores             ? detail.element_bytes
                                          : std::min<std::uint64_t>(value, detail.element_bytes);
    copy.from_bytes[lane] = static_cast<std::uint8_t>(bytes);
  });
}

/// Resolves the sources of the lanes. Returns the lanes without a finding.
std::uint32_t read_sources(Context& context, const Step& step, const MemoryDetail& detail,
                           std::uint32_t lanes, AsyncCopies::Copy& copy) {
  std::uint64_t from[32];
  compute_addresses(context, detail.as<AsyncCopyDetail>().from, from);
  std::uint32_t left = lanes;
  for_each_lane(lanes, [&](unsigned lane) {
    if (copy.from_bytes[lane] == 0) left &= ~(1u << lane);
  });
  std::uint32_t good = lanes & ~left;
  // One access for all lanes that read as many bytes; nearly always that is all lanes.
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
    AccessTargets source;
    resolve_access(context, step, detail, read, source);
    for_each_lane(source.mask, [&](unsigned lane) { copy.from[lane] = source.host[lane]; });
    good |= source.mask;
  }
  return good;
}

}  // namespace

AsyncCopies& AsyncCopies::of(Context& context) {
  Cta& cta = *context.cta;
  if (cta.async == nullptr) cta.async = std::make_shared<AsyncCopies>();
  AsyncCopies& copies = *cta.async;
  // All blocks that run in this place, one after another, share one object.
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
  WarpCopies& own = warps_[warp.index];
  for (Copy& copy : own.copies) {
    const std::uint32_t now = copy.uncommitted & lanes;
    for_each_lane(now, [&](unsigned lane) { copy.group[lane] = own.groups[lane]; });
    copy.uncommitted &= ~now;
  }
  for_each_lane(lanes, [&](unsigned lane) { ++own.groups[lane]; });
}

void AsyncCopies::finish(Context& context, std::uint32_t lanes, std::uint64_t newest, bool all) {
  WarpCopies& own = warps_[context.warp->index];
  Cta& cta = *context.cta;
  std::array<std::uint64_t, kLanes> through{};
  for (Copy& copy : own.copies) {
    std::uint32_t now = 0;
    for_each_lane(copy.lanes & lanes, [&](unsigned lane) {
      const bool committed = (copy.uncommitted >> lane & 1u) == 0;
      if (all || (committed && copy.group[lane] + newest < own.groups[lane])) now |= 1u << lane;
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
  std::erase_if(own.copies, [](const Copy& copy) { return copy.lanes == 0; });
  notify_races(context, lanes, through);
}

void run_copy_async(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  const MemoryDetail& detail = context.code->memory[step.detail];
  AsyncCopies::Copy copy;
  copy.bytes = detail.element_bytes;
  copy.statement = step.statement;
  read_sizes(context, detail, mask, copy);
  std::uint64_t to[32];
  compute_addresses(context, detail.address, to);
  AccessRequest write;
  write.space = ptx::Space::Shared;
  write.addresses = to;
  write.mask = mask;
  write.bytes = write.alignment = detail.element_bytes;
  write.writes = true;
  write.mark = false;  // the bytes are written later
  write.kind = RaceAccess::Kind::AsyncWrite;
  copy.ticket = write.ticket = AsyncCopies::of(context).new_ticket();
  AccessTargets target;
  resolve_access(context, step, detail, write, target);
  copy.lanes = read_sources(context, step, detail, target.mask, copy);
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
  const auto& wait = context.code->memory[step.detail].as<WaitGroupDetail>();
  AsyncCopies::of(context).finish(context, mask, wait.max_pending, wait.all);
}

}  // namespace ptxgen::inline v0::emulator
