// src/emulator/race/cluster.cpp - races between the blocks of a cluster
#include <algorithm>

#include "emulator/race/shared.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

constexpr std::size_t kMaxVisits = 4096;

}  // namespace

SharedRaces& SharedRaces::of_block(std::uint32_t rank) const noexcept {
  return static_cast<SharedRaces&>(*cluster_->blocks[rank]->races);
}

SharedRaces& SharedRaces::of(const Context& context) noexcept {
  if (cluster_ == nullptr || context.cta->rank == rank_) return *this;
  return of_block(context.cta->rank);
}

SyncObjects& SharedRaces::sync() noexcept {
  return cluster_ == nullptr ? sync_ : of_block(0).sync_;
}

std::uint64_t SharedRaces::tag_of(const Cta* owner) const noexcept {
  return cluster_ == nullptr || owner == nullptr ? 0 : std::uint64_t{owner->rank + 1u} << 48;
}

std::uint32_t SharedRaces::unordered_with(const Now& now, std::uint32_t lane,
                                          const Record& at) const {
  if (at.block == now.block) {
    return now.order.unordered_with(now.warp, lane, at.warp, at.lanes, at.tick);
  }
  if (at.tick <= forgotten(at.block)) return 0;
  return now.order.unknown_of(now.warp, lane, at.block, at.warp, at.lanes, at.tick);
}

std::uint32_t SharedRaces::unordered(const Now& now, std::uint32_t lanes, const Record& at) const {
  if (at.block == now.block) {
    return now.order.unordered(now.warp, lanes, at.warp, at.lanes, at.tick);
  }
  std::uint32_t result = 0;
  for_each_lane(lanes, [&](unsigned lane) {
    if (unordered_with(now, lane, at) != 0) result |= 1u << lane;
  });
  return result;
}

void SharedRaces::note_visit(const Now& now) {
  const Tick tick = now.order.now();
  const auto first = static_cast<std::uint32_t>(std::countr_zero(now.access.mask));
  for (Visit& at : visits_) {
    // The last visit of a thread replaces those before.
    if (at.block != now.block || at.warp != now.warp || at.statement != now.statement ||
        at.lanes != now.access.mask) {
      continue;
    }
    at.tick = tick;
    return;
  }
  if (visits_.size() >= kMaxVisits) return;
  visits_.push_back({now.block, now.warp, now.access.mask, now.statement, tick, now.mark,
                     now.access.addresses[first], now.access.bytes});
}

void SharedRaces::block_leaves(Cta& cta) {
  if (cluster_ == nullptr) return;
  for (const Visit& at : visits_) {
    if (at.tick <= forgotten(at.block)) continue;
    const std::uint32_t unknown = order_.unknown_to_all(at.block, at.warp, at.lanes, at.tick);
    if (unknown == 0) continue;
    Cta& visitor = *cluster_->blocks[at.block];
    Context context;
    context.cta = &visitor;
    context.warp = &visitor.warps[at.warp];
    context.worker = visitor.worker;
    context.grid = visitor.grid;
    Conflict conflict;
    conflict.rule = Rule::ExitedBlock;
    conflict.lane = static_cast<std::uint32_t>(std::countr_zero(unknown));
    conflict.bytes = at.bytes;
    conflict.address = at.address;
    conflict.own = at.mark;
    conflict.same_block = false;
    conflict.owner = &cta;
    conflict.other = {cta.warps[0].exit_statement, cta.linear, 0};
    sink_->found(context, at.statement, conflict);
  }
  visits_.clear();
}

void SharedRaces::release(Context& context, std::uint32_t lanes, std::uint64_t object,
                          const Cta* owner) {
  if (cluster_ != nullptr && object >= kClusterBarrierObject) {
    Arrivals& at = arrivals_[object & 1u];
    if (at.lanes == 0) at.first = order_.now();
    at.lanes += static_cast<std::uint32_t>(std::popcount(lanes));
  }
  // As a barrier of the block does.
  if (object >= kClusterBarrierObject) {
    sync().take_effect(party(context, kNoIndex), lanes, ptx::Modifier::none);
  }
  sync().release(party(context, kNoIndex), lanes, object | tag_of(owner));
}

void SharedRaces::acquire(Context& context, std::uint32_t lanes, std::uint64_t object,
                          const Cta* owner) {
  sync().acquire(party(context, kNoIndex), lanes, object | tag_of(owner));
}

void SharedRaces::forget(std::uint64_t object, const Cta& owner) {
  if (cluster_ == nullptr) return sync_.forget(object);
  sync().forget(object | tag_of(&owner));
  if (object < kClusterBarrierObject) return;
  // All threads have waited for that phase: accesses before the arrivals are ordered.
  for (const Cta* cta : cluster_->blocks) {
    SharedRaces& block = of_block(cta->rank);
    Arrivals& at = block.arrivals_[object & 1u];
    if (at.lanes == cta->threads) {
      block.cluster_floor_ = std::max(block.cluster_floor_, at.first);
      block.order_.raise_floor(at.first);
    }
    at = {};
  }
}

void SharedRaces::forget_cluster() {
  for (const Cta* cta : cluster_->blocks) of_block(cta->rank).forget_all();
  sync().clear();
}

/// Other blocks have ticks of this one, which cannot be shifted: restarts time, and misses races
/// across the restart.
void SharedRaces::forget_all() {
  order_.forget();
  cluster_floor_ = 0;
  arrivals_ = {};
  visits_.clear();
  for (auto& lanes : lane_sync_) lanes.reset();
  for (std::uint32_t i = 0; i < written_.size(); ++i) {
    if (written_[i] == kSlow) {
      std::erase_if(records_[reader_warps_[i]], [](const Record& at) { return !at.pending; });
    } else if (static_cast<std::uint32_t>(written_[i]) >> 12 != kPendingTick) {
      written_[i] = 0;
    }
    read_[i] = 0;
  }
}

}  // namespace ptxgen::inline v0::emulator
