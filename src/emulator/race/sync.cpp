// src/emulator/race/sync.cpp - release and acquire through memory
#include "emulator/race/sync.hpp"

#include <algorithm>
#include <set>

namespace ptxgen::inline v0::emulator {

bool is_strong(const RaceAccess& access) noexcept {
  return access.kind == RaceAccess::Kind::Atomic ||
         (access.order != ptx::Modifier::none && access.order != ptx::Modifier::weak);
}

Mark mark_of(const RaceAccess& access) noexcept {
  const bool writes =
      access.kind != RaceAccess::Kind::Read && access.kind != RaceAccess::Kind::AsyncRead;
  if (is_strong(access)) return writes ? Mark::StrongWrite : Mark::StrongRead;
  return writes ? Mark::WeakWrite : Mark::WeakRead;
}

bool acquires(ptx::Modifier order) noexcept {
  return order == ptx::Modifier::acquire || order == ptx::Modifier::acq_rel ||
         order == ptx::Modifier::sc;
}

bool releases(ptx::Modifier order) noexcept {
  return order == ptx::Modifier::release || order == ptx::Modifier::acq_rel ||
         order == ptx::Modifier::sc;
}

namespace {

int width(ptx::Modifier scope) noexcept {
  switch (scope) {
    case ptx::Modifier::cta:
      return 0;
    case ptx::Modifier::cluster:
      return 1;
    case ptx::Modifier::sys:
      return 3;
    default:
      return 2;  // gpu, gl, not said
  }
}

/// Merges a chain into one release: a lock taken a million times must not make a chain of a
/// million.
std::shared_ptr<Release> flatten(const Release& chain) {
  auto flat = std::make_shared<Release>();
  auto all = std::make_shared<Foreign>();
  static const std::vector<std::uint32_t> full(32, 0xffffffffu);
  for (const Release* at = &chain; at != nullptr; at = at->before.get()) {
    if (width(at->scope) < width(ptx::Modifier::gpu)) continue;
    (*all)[at->block].join(at->known, full);
    if (!at->foreign) continue;
    for (const auto& [block, known] : *at->foreign) (*all)[block].join(known, full);
  }
  flat->block = chain.block;
  flat->cta = chain.cta;
  flat->thread = chain.thread;
  flat->statement = chain.statement;
  flat->foreign = std::move(all);
  return flat;
}

}  // namespace

ptx::Modifier narrower(ptx::Modifier a, ptx::Modifier b) noexcept {
  return width(b) < width(a) ? b : a;
}

ThreadOrder::Reaches SyncObjects::reaches_lanes(const Party& party, std::uint32_t lanes,
                                                ptx::Modifier scope,
                                                std::uint32_t statement) const {
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes | 0x80000000u));
  return [this, &party, lane, scope, statement](const Release& at) {
    return at.block == party.order->number() || reaches_(party, lane, at, scope, statement);
  };
}

void SyncObjects::leave(const Party& party, const RaceAccess& access, std::uint32_t lane,
                        std::uint64_t key) {
  const bool atomic = access.kind == RaceAccess::Kind::Atomic;
  const LaneSync::Fence* fence = *party.lanes ? &(*party.lanes)->fence[lane] : nullptr;
  if (fence != nullptr && !fence->release) fence = nullptr;
  if (!releases(access.order) && fence == nullptr) {
    // A store ends the release sequence; a read-modify-write continues it.
    if (!atomic && !objects_.empty()) objects_.erase(key);
    return;
  }
  auto result = std::make_shared<Release>();
  if (releases(access.order)) {
    party.order->publish(party.warp(), 1u << lane, *result);
    result->scope = access.scope;
    result->statement = party.statement;
  } else {
    result->block = fence->release->block;
    result->known = fence->release->known;
    result->foreign = fence->release->foreign;
    result->known.add(party.warp(), 1u << lane, fence->tick, party.order->warp_lanes());
    const bool fence_is_narrower = width(fence->scope) <= width(access.scope);
    result->scope = fence_is_narrower ? fence->scope : access.scope;
    result->statement = fence_is_narrower ? fence->statement : party.statement;
  }
  result->cta = party.context->cta->linear;
  result->thread = thread_of(party.warp(), lane);
  ReleasePointer& object = objects_[key];
  if (atomic && object) {
    if (object->block == result->block && width(object->scope) == width(result->scope)) {
      // Of the same block: one node for both.
      result->known.join(object->known, party.order->warp_lanes());
      result->foreign = join(result->foreign, object->foreign);
      result->before = object->before;
      result->depth = object->depth;
    } else {
      result->before = object;
      result->depth = object->depth + 1;
    }
    const std::size_t width_of_map =
        result->before && result->before->foreign ? result->before->foreign->size() : 0;
    if (result->depth > 64 + width_of_map) result = flatten(*result);
  }
  object = std::move(result);
}

void SyncObjects::strong_access(const Party& party, const RaceAccess& access, std::uint64_t tag) {
  const bool reads =
      access.kind == RaceAccess::Kind::Read || access.kind == RaceAccess::Kind::Atomic;
  const bool writes =
      access.kind == RaceAccess::Kind::Write || access.kind == RaceAccess::Kind::Atomic;
  // No release so far: most kernels.
  if (objects_.empty() && !(writes && (releases(access.order) || *party.lanes))) return;
  bool released = false;
  for_each_lane(access.mask, [&](unsigned lane) {
    const std::uint64_t key = (access.addresses[lane] & ~std::uint64_t{3}) | tag;
    const auto found = objects_.find(key);
    if (reads && found != objects_.end()) {
      const ReleasePointer release = found->second;
      if (acquires(access.order)) {
        party.order->learn(party.warp(), 1u << lane, release, access.scope,
                           reaches_lanes(party, 1u << lane, access.scope, party.statement));
      } else {
        if (!*party.lanes) *party.lanes = std::make_unique<LaneSync>();
        auto& seen = (*party.lanes)->seen[lane];
        const auto same = std::ranges::find(seen, key, &LaneSync::Seen::object);
        LaneSync::Seen& entry = same != seen.end() ? *same : seen.emplace_back();
        entry = {key, release, access.scope, party.statement};
      }
    }
    if (writes) {
      leave(party, access, lane, key);
      released = true;
    }
  });
  if (released) party.order->advance(party.warp());
}

void SyncObjects::take_effect(const Party& party, std::uint32_t lanes, ptx::Modifier scope) {
  if (!*party.lanes) return;
  for_each_lane(lanes, [&](unsigned lane) {
    std::vector<LaneSync::Seen> seen = std::move((*party.lanes)->seen[lane]);
    (*party.lanes)->seen[lane].clear();
    for (const LaneSync::Seen& at : seen) {
      const bool read_is_narrower = width(at.scope) < width(scope);
      const ptx::Modifier both = read_is_narrower ? at.scope : scope;
      party.order->learn(party.warp(), 1u << lane, at.release, both,
                         reaches_lanes(party, 1u << lane, both,
                                       read_is_narrower ? at.statement : party.statement));
    }
  });
}

void SyncObjects::fence(const Party& party, std::uint32_t lanes, ptx::Modifier order,
                        ptx::Modifier scope) {
  if (order != ptx::Modifier::release) take_effect(party, lanes, scope);
  if (order == ptx::Modifier::acquire) return;
  if (!*party.lanes) *party.lanes = std::make_unique<LaneSync>();
  const Known* last = nullptr;
  std::shared_ptr<Release> snapshot;
  for_each_lane(lanes, [&](unsigned lane) {
    const Known* known = &party.order->known(party.warp(), lane);
    if (known != last) {
      snapshot = std::make_shared<Release>();
      party.order->snapshot(party.warp(), lane, *snapshot);
      last = known;
    }
    LaneSync::Fence& fence = (*party.lanes)->fence[lane];
    fence.tick = party.order->now();
    fence.release = snapshot;
    fence.scope = scope;
    fence.statement = party.statement;
  });
  party.order->advance(party.warp());
}

void SyncObjects::release(const Party& party, std::uint32_t lanes, std::uint64_t object) {
  std::shared_ptr<Release>& at = named_[object];
  if (!at) at = std::make_shared<Release>();
  Release own;
  party.order->publish(party.warp(), lanes, own);
  if (at->known.empty()) at->block = own.block;
  if (at->block == own.block) {
    at->known.join(own.known, party.order->warp_lanes());
  } else {
    // Of another block of the cluster.
    auto more = std::make_shared<Foreign>();
    (*more)[own.block] = std::move(own.known);
    at->foreign = join(at->foreign, ForeignPointer(more));
  }
  at->foreign = join(at->foreign, own.foreign);
  party.order->advance(party.warp());
}

void SyncObjects::release_access(const ThreadOrder& order, std::uint32_t warp, std::uint32_t lanes,
                                 Tick tick, std::uint64_t object) {
  std::shared_ptr<Release>& at = named_[object];
  if (!at) at = std::make_shared<Release>();
  if (at->known.empty()) at->block = order.number();
  if (at->block == order.number()) {
    at->known.add(warp, lanes, tick, order.warp_lanes());
    return;
  }
  Release own;
  own.known.add(warp, lanes, tick, order.warp_lanes());
  auto more = std::make_shared<Foreign>();
  (*more)[order.number()] = std::move(own.known);
  at->foreign = join(at->foreign, ForeignPointer(more));
}

void SyncObjects::acquire(const Party& party, std::uint32_t lanes, std::uint64_t object) {
  const auto found = named_.find(object);
  if (found != named_.end()) {
    party.order->learn(party.warp(), lanes, *found->second,
                       reaches_lanes(party, lanes, ptx::Modifier::none, party.statement));
  }
}

void SyncObjects::clear() {
  objects_.clear();
  named_.clear();
}

void SyncObjects::rebase(Tick by, std::vector<std::unique_ptr<LaneSync>>& warps) {
  // Releases are shared and read-only, except here: no other reference exists.
  std::set<const Release*> done;
  const auto shift = [&](const Release* release) {
    for (const Release* at = release; at != nullptr; at = at->before.get()) {
      if (!done.insert(at).second) return;
      const_cast<Release*>(at)->known.rebase(by);
    }
  };
  for (const auto& [key, release] : objects_) shift(release.get());
  for (const auto& [key, release] : named_) shift(release.get());
  for (const auto& warp : warps) {
    if (!warp) continue;
    for (LaneSync::Fence& fence : warp->fence) {
      fence.tick = fence.tick > by ? fence.tick - by : 0;
      shift(fence.release.get());
    }
    for (const auto& seen : warp->seen) {
      for (const LaneSync::Seen& at : seen) shift(at.release.get());
    }
  }
}

std::uint64_t SyncObjects::bytes() const noexcept {
  return (objects_.size() + named_.size()) * (sizeof(Release) + 64);
}

}  // namespace ptxgen::inline v0::emulator
