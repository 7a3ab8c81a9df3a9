// src/emulator/race/global.cpp - races in the global memory of a launch
#include "emulator/race/global.hpp"

#include <algorithm>

namespace ptxgen::inline v0::emulator {

namespace {

constexpr std::size_t kMaxMissed = 256;

/// The scope of a strong access if it has not all blocks.
ptx::Modifier narrow_scope(const RaceAccess& access, Mark mark) noexcept {
  const bool narrow = access.scope == ptx::Modifier::cta || access.scope == ptx::Modifier::cluster;
  return is_strong(mark) && narrow ? access.scope : ptx::Modifier::none;
}

}  // namespace

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

GlobalRaces::GlobalRaces(std::shared_ptr<RaceTeam> team, std::shared_ptr<RaceSink> sink)
    : team_(std::move(team)),
      shadow_(&team_->shadow()),
      sink_(std::move(sink)),
      sync_([this](const SyncObjects::Party& who, std::uint32_t lane, const Release& release,
                   ptx::Modifier scope, std::uint32_t statement) {
        const Cta& cta = *who.context->cta;
        const Grid& grid = *who.context->grid;
        const bool theirs = !reaches_blocks(grid, release.scope, release.cta, cta.linear);
        const bool own = !reaches_blocks(grid, scope, release.cta, cta.linear);
        if (!theirs && !own) return true;
        Block& block = block_of(cta);
        if (block.missed.size() < kMaxMissed) {
          Missed missed;
          missed.known = release.known;
          missed.block = release.block;
          missed.scope = theirs ? release.scope : scope;
          missed.statement = theirs ? release.statement : statement;
          missed.releaser = {release.statement, release.cta, release.thread};
          missed.own = !theirs;
          block.missed.push_back(std::move(missed));
        }
        static_cast<void>(lane);
        return false;
      }),
      first_id_(team_->first_id()) {}

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
  auto& slot = blocks_[cta.linear];
  if (idle_.empty()) {
    slot = std::make_unique<Block>(cta, block_count_++);
    return;
  }
  slot = std::move(idle_.back());
  idle_.pop_back();
  slot->order.begin(cta, block_count_++);
  slot->missed.clear();
  slot->era = 0;
  for (auto& lanes : slot->lanes) lanes.reset();
}

void GlobalRaces::block_ends(const Cta& cta) {
  last_cta_ = nullptr;
  const auto found = blocks_.find(cta.linear);
  if (found == blocks_.end()) return;
  idle_.push_back(std::move(found->second));
  blocks_.erase(found);
}

SyncObjects::Party GlobalRaces::party(Context& context, std::uint32_t statement) {
  Block& block = block_of(*context.cta);
  return {&context, statement, &block.order, &block.lanes[context.warp->index]};
}

std::uint32_t GlobalRaces::era_of(Block& block, const Cta& cta) {
  if (block.era != 0 && block.era_tick == block.order.now()) return block.era;
  if (ids_left_ == 0) {
    next_id_ = team_->take_ids();
    ids_left_ = RaceTeam::kIds;
    const std::uint32_t chunk = (next_id_ - first_id_) / RaceTeam::kIds;
    chunks_.resize(chunk + 1, kNoIndex);
    chunks_[chunk] = static_cast<std::uint32_t>(eras_.size() / RaceTeam::kIds);
  }
  --ids_left_;
  block.era_tick = block.order.now();
  block.era = next_id_++;
  eras_.push_back({cta.linear, block.order.number(), block.era_tick});
  full_ = eras_.size() >= kMaxEras;
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
  if (access.mask == 0 || full_) return;
  // The caller has checked other accesses, but not those of copy engines.
  if (access.kind == RaceAccess::Kind::AsyncRead || access.kind == RaceAccess::Kind::AsyncWrite) {
    const auto lane = static_cast<unsigned>(std::countr_zero(access.mask));
    if (!team_->watches(access.addresses[lane])) {
      if (access.kind == RaceAccess::Kind::AsyncWrite) throw Replay{true};
      return;
    }
  }
  Block& block = block_of(*context.cta);
  const Mark mark = mark_of(access);
  Now now{context,
          statement,
          access,
          block,
          context.warp->index,
          mark,
          narrow_scope(access, mark),
          unit_of(access),
          short_statement(statement) << 10 | (is_strong(mark) ? kStrong : 0u),
          era_of(block, *context.cta)};
  std::uint32_t count = 0;
  if (!is_strong(mark) && is_run(access, count) && run(now, count)) return;
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
  // Shared memory of one block: a tag unique to the block.
  const Cta& owner = access.owner != nullptr ? *access.owner : *context.cta;
  const std::uint64_t tag = std::uint64_t{1} << 63 | owner.linear << 24;
  sync_.strong_access(party(context, statement), access, tag);
}

// Order.

void GlobalRaces::barrier_arrive(Context& context, std::uint32_t id, std::uint32_t lanes,
                                 bool wait) {
  const SyncObjects::Party who = party(context, kNoIndex);
  // Formally a relaxed read needs a fence after it. A barrier counts as one: in NVIDIA's samples
  // one thread reads a counter, and then all threads of its block read the guarded data.
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
  return shadow_->bytes() + team_->list_bytes() + eras_.capacity() * sizeof(Era) + sync_.bytes() +
         scoped_.size() * (sizeof(ScopedAccess) + 64);
}

namespace {

/// The checks of several workers, as one.
class TeamRaces final : public Races {
 public:
  TeamRaces(std::shared_ptr<RaceTeam> team, const std::shared_ptr<RaceSink>& sink, unsigned workers)
      : team_(std::move(team)) {
    for (unsigned i = 0; i < workers; ++i) {
      workers_.push_back(std::make_unique<GlobalRaces>(team_, sink));
    }
  }
  void access(Context& context, std::uint32_t statement, const RaceAccess& access) override {
    of(context).access(context, statement, access);
  }
  void synchronise(Context& context, std::uint32_t statement, const RaceAccess& access) override {
    of(context).synchronise(context, statement, access);
  }
  void barrier_arrive(Context& context, std::uint32_t id, std::uint32_t lanes, bool wait) override {
    of(context).barrier_arrive(context, id, lanes, wait);
  }
  void barrier_complete(Cta& cta, std::uint32_t id) override { of(cta).barrier_complete(cta, id); }
  void warp_sync(Context& context, std::uint32_t lanes) override {
    of(context).warp_sync(context, lanes);
  }
  void fence(Context& context, std::uint32_t lanes, ptx::Modifier order, ptx::Modifier scope,
             std::uint32_t statement) override {
    of(context).fence(context, lanes, order, scope, statement);
  }
  void release(Context& context, std::uint32_t lanes, std::uint64_t object,
               const Cta* owner) override {
    of(context).release(context, lanes, object, owner);
  }
  void acquire(Context& context, std::uint32_t lanes, std::uint64_t object,
               const Cta* owner) override {
    of(context).acquire(context, lanes, object, owner);
  }
  void forget(std::uint64_t object, const Cta& owner) override { of(owner).forget(object, owner); }
  void bulk_write(Context&, const BulkWrite&) override {}
  void bulk_observed(Context&, std::uint32_t, const BulkWrite&, std::uint64_t) override {}
  void async_complete(Context&, std::uint32_t, std::uint64_t) override {}
  void restart(const Cta&) override {}
  void block_begins(const Cta& cta) override { of(cta).block_begins(cta); }
  void block_ends(const Cta& cta) override { of(cta).block_ends(cta); }
  void block_leaves(Cta&) override {}
  [[nodiscard]] bool watches(std::uint64_t address) const noexcept override {
    return team_->watches(address);
  }
  void undo() noexcept override { team_->undo(); }
  [[nodiscard]] bool complete() const noexcept override {
    return std::ranges::all_of(workers_, [](const auto& each) { return each->complete(); });
  }
  [[nodiscard]] std::uint64_t overhead_bytes() const noexcept override {
    return workers_[0]->overhead_bytes();
  }

 private:
  [[nodiscard]] GlobalRaces& of(const Context& context) const noexcept {
    return *workers_[context.worker->index];
  }
  [[nodiscard]] GlobalRaces& of(const Cta& cta) const noexcept {
    return *workers_[cta.worker->index];
  }
  std::shared_ptr<RaceTeam> team_;
  std::vector<std::unique_ptr<GlobalRaces>> workers_;
};

}  // namespace

std::unique_ptr<Races> make_global_races(std::shared_ptr<GlobalShadow> shadow,
                                         std::shared_ptr<RaceSink> sink, AddressSpace* space,
                                         const RacePlan& plan) {
  auto team = std::make_shared<RaceTeam>(std::move(shadow), space, plan);
  if (plan.workers > 1) {
    return std::make_unique<TeamRaces>(std::move(team), sink, plan.workers);
  }
  return std::make_unique<GlobalRaces>(std::move(team), std::move(sink));
}

}  // namespace ptxgen::inline v0::emulator
