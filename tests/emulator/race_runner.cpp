// tests/emulator/race_runner.cpp - blocks without programs, for the race checks
#include "race_runner.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "emulator/race/global.hpp"

namespace ptxgen::test {

using namespace emulator;

namespace {
constexpr std::uint64_t kGlobalStart = 0x100'0000'0000u;
}

class RaceRunner::Sink final : public RaceSink {
 public:
  explicit Sink(RaceRunner& runner) : runner_(runner) {}
  void found(Context& context, std::uint32_t statement, const Conflict& conflict) override {
    all.push_back(
        {statement, context.cta->linear, context.warp->first_thread + conflict.lane, conflict});
  }
  const std::byte* content(const Context& context, bool shared, std::uint64_t address) override {
    if (shared) return context.cta->shared + address;
    return runner_.global_.data() + (address - kGlobalStart);
  }
  std::vector<Found> all;

 private:
  RaceRunner& runner_;
};

RaceRunner::RaceRunner(std::uint32_t blocks, std::uint32_t warps, std::uint32_t shared_bytes,
                       std::uint32_t threads)
    : sink_(std::make_shared<Sink>(*this)) {
  if (threads == 0) threads = warps * kLanes;
  grid_.grid = {blocks, 1, 1};
  grid_.block = {threads, 1, 1};
  grid_.cluster = {1, 1, 1};
  global_.resize(1u << 16);
  for (std::uint32_t b = 0; b < blocks; ++b) {
    auto cta = std::make_unique<Cta>();
    cta->grid = &grid_;
    cta->linear = cta->order = b;
    cta->id = {b, 0, 0};
    cta->threads = threads;
    cta->shared_bytes = shared_bytes;
    shared_.emplace_back(shared_bytes);
    cta->warps = std::vector<Warp>(warps);
    for (std::uint32_t w = 0; w < warps; ++w) {
      Warp& warp = cta->warps[w];
      warp.cta = cta.get();
      warp.index = w;
      warp.first_thread = w * kLanes;
      const std::uint32_t left = threads - w * kLanes;
      warp.lanes = left >= kLanes ? kAll : (1u << left) - 1;
    }
    cta->races = make_shared_races(*cta, sink_);
    ctas_.push_back(std::move(cta));
  }
  for (std::uint32_t b = 0; b < blocks; ++b) ctas_[b]->shared = shared_[b].data();
}

RaceRunner::~RaceRunner() = default;

RaceRunner& RaceRunner::block(std::uint32_t block) {
  block_ = block;
  warp_ = 0;
  return *this;
}

RaceRunner& RaceRunner::warp(std::uint32_t warp) {
  warp_ = warp;
  return *this;
}

Context& RaceRunner::context() {
  context_.grid = &grid_;
  context_.cta = ctas_[block_].get();
  context_.warp = &ctas_[block_]->warps[warp_];
  return context_;
}

RaceAccess RaceRunner::access(RaceAccess::Kind kind, std::uint32_t mask, unsigned bytes,
                              const Addresses& addresses, ptx::Modifier order,
                              const std::function<std::uint64_t(unsigned)>& values) {
  RaceAccess result;
  result.kind = kind;
  result.order = order;
  result.mask = mask & ctas_[block_]->warps[warp_].lanes;
  result.bytes = static_cast<std::uint8_t>(bytes);
  for_each_lane(result.mask, [&](unsigned lane) { addresses_[lane] = addresses(lane); });
  result.addresses = addresses_.data();
  if (values) {
    values_.assign(std::size_t{32} * bytes, std::byte{0});
    for_each_lane(result.mask, [&](unsigned lane) {
      const std::uint64_t value = values(lane);
      std::memcpy(values_.data() + std::size_t{lane} * bytes, &value, std::min(bytes, 8u));
    });
    result.values = values_.data();
    result.value_stride = bytes;
  }
  return result;
}

void RaceRunner::shared(RaceAccess::Kind kind, std::uint32_t statement, std::uint32_t mask,
                        unsigned bytes, const Addresses& addresses, ptx::Modifier order,
                        const std::function<std::uint64_t(unsigned)>& values,
                        std::uint64_t ticket) {
  RaceAccess result = access(kind, mask, bytes, addresses, order, values);
  result.ticket = ticket;
  shared_races().access(context(), statement, result);
  if (grid_.races && is_strong(result)) global_races().synchronise(context(), statement, result);
  if (result.values == nullptr) return;
  for_each_lane(result.mask, [&](unsigned lane) {
    std::memcpy(cta().shared + addresses_[lane], result.values + std::size_t{lane} * bytes, bytes);
  });
}

void RaceRunner::load(std::uint32_t statement, const Addresses& addresses, std::uint32_t mask,
                      unsigned bytes) {
  shared(RaceAccess::Kind::Read, statement, mask, bytes, addresses);
}

void RaceRunner::store(std::uint32_t statement, const Addresses& addresses, std::uint32_t mask,
                       unsigned bytes) {
  shared(RaceAccess::Kind::Write, statement, mask, bytes, addresses);
}

void RaceRunner::global(RaceAccess::Kind kind, std::uint32_t statement, std::uint32_t mask,
                        unsigned bytes, const Addresses& addresses, ptx::Modifier order,
                        ptx::Modifier scope, const std::function<std::uint64_t(unsigned)>& values) {
  RaceAccess result = access(
      kind, mask, bytes, [&](unsigned lane) { return kGlobalStart + addresses(lane); }, order,
      values);
  result.scope = scope;
  global_races().access(context(), statement, result);
  if (is_strong(result)) shared_races().synchronise(context(), statement, result);
  if (result.values == nullptr) return;
  for_each_lane(result.mask, [&](unsigned lane) {
    std::memcpy(global_.data() + (addresses_[lane] - kGlobalStart),
                result.values + std::size_t{lane} * bytes, bytes);
  });
}

void RaceRunner::barrier(std::uint32_t id, std::uint32_t warps) {
  const std::uint32_t before = warp_;
  for (std::uint32_t w = 0; w < cta().warps.size(); ++w) {
    const std::uint32_t live = cta().warps[w].live();
    if ((warps >> w & 1u) == 0 || live == 0) continue;
    warp(w);
    shared_races().barrier_arrive(context(), id, live, true);
    if (grid_.races) global_races().barrier_arrive(context(), id, live, true);
  }
  cta().barriers[id].all = warps == kAll;
  shared_races().barrier_complete(cta(), id);
  if (grid_.races) global_races().barrier_complete(cta(), id);
  warp(before);
}

void RaceRunner::barrier_arrive(std::uint32_t id) {
  const std::uint32_t live = cta().warps[warp_].live();
  shared_races().barrier_arrive(context(), id, live, false);
  if (grid_.races) global_races().barrier_arrive(context(), id, live, false);
}

void RaceRunner::warp_sync(std::uint32_t mask) {
  shared_races().warp_sync(context(), mask);
  if (grid_.races) global_races().warp_sync(context(), mask);
}

void RaceRunner::fence(ptx::Modifier scope, std::uint32_t mask, ptx::Modifier order,
                       std::uint32_t statement) {
  shared_races().fence(context(), mask, order, scope, statement);
  if (grid_.races) global_races().fence(context(), mask, order, scope, statement);
}

void RaceRunner::release(std::uint64_t object, std::uint32_t mask) {
  shared_races().release(context(), mask, object);
  if (grid_.races) global_races().release(context(), mask, object);
}

void RaceRunner::acquire(std::uint64_t object, std::uint32_t mask) {
  shared_races().acquire(context(), mask, object);
  if (grid_.races) global_races().acquire(context(), mask, object);
}

void RaceRunner::async_complete(std::uint32_t mask, std::uint64_t through) {
  shared_races().async_complete(context(), mask, through);
}

void RaceRunner::exit(std::uint32_t mask) { cta().warps[warp_].exited |= mask; }

void RaceRunner::with_global() {
  shadow_ = std::make_shared<GlobalShadow>(kGlobalStart, global_.size());
  end_launch();
}

void RaceRunner::end_launch() {
  grid_.races = make_global_races(shadow_, sink_);
  for (const auto& cta : ctas_) {
    for (Warp& warp : cta->warps) warp.exited = 0;
    grid_.races->block_begins(*cta);
  }
}

std::vector<RaceRunner::Found> RaceRunner::take() { return std::exchange(sink_->all, {}); }

std::size_t RaceRunner::count(Rule rule) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      sink_->all, [rule](const Found& found) { return found.conflict.rule == rule; }));
}

}  // namespace ptxgen::test
