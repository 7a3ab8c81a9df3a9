// src/emulator/race/team.cpp - shared state of a launch's global race checks
#include "emulator/race/team.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

namespace ptxgen::inline v0::emulator {
namespace {

// Maximum id at the start of a launch: half of all, enough for any launch.
constexpr std::uint32_t kLastFirstId = 0x8000'0000u;

}  // namespace

RaceUndo::RaceUndo(AddressSpace& space, GlobalShadow& shadow)
    : space_(space), shadow_(shadow), epoch_(shadow.next_epoch()) {}

RaceUndo::~RaceUndo() {
  for (auto& chunk : chunks_) {
    if (shadow_.spare.size() < kSpareChunks) shadow_.spare.push_back(std::move(chunk));
  }
}

void RaceUndo::before_write(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t first = (address - kGlobalBase) / kPage;
  const std::uint64_t last = (address - kGlobalBase + bytes - 1) / kPage;
  for (std::uint64_t page = first; page <= last; ++page) {
    if (shadow_.saved(page) != epoch_) save(page);
  }
}

std::byte* RaceUndo::place() {
  if (used_ == kChunkPages) {
    if (shadow_.spare.empty()) {
      chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(kChunkPages * kPage));
    } else {
      chunks_.push_back(std::move(shadow_.spare.back()));
      shadow_.spare.pop_back();
    }
    used_ = 0;
  }
  return chunks_.back().get() + kPage * used_++;
}

void RaceUndo::save(std::uint64_t page) {
  const std::uint64_t* const words = space_.written() + page * kPage / 64;
  std::uint64_t any = 0;
  for (std::size_t i = 0; i < kPage / 64; ++i) any |= __atomic_load_n(words + i, __ATOMIC_RELAXED);
  Saved* saved = nullptr;
  {
    const std::lock_guard lock(mutex_);
    saved = &saved_.emplace_back();
    if (any != 0) saved->data = place();
  }
  saved->page = page;
  for (std::size_t i = 0; i < saved->written.size(); ++i) {
    saved->written[i] = __atomic_load_n(words + i, __ATOMIC_RELAXED);
  }
  if (any != 0) std::memcpy(saved->data, space_.host(kGlobalBase + page * kPage), kPage);
  shadow_.set_saved(page, epoch_);
}

void RaceUndo::restore() noexcept {
  for (const Saved& saved : saved_) {
    std::byte* const host = space_.host(kGlobalBase + saved.page * kPage);
    if (saved.data != nullptr) {
      std::memcpy(host, saved.data, kPage);
    } else {
      std::memset(host, 0, kPage);
    }
    std::ranges::copy(saved.written, space_.written() + saved.page * kPage / 64);
  }
}

RaceTeam::RaceTeam(std::shared_ptr<GlobalShadow> shadow, AddressSpace* space, RacePlan plan)
    : shadow_(std::move(shadow)), plan_(std::move(plan)) {
  if (shadow_->next_id > kLastFirstId) shadow_->reset();
  first_id_ = shadow_->next_id;
  lists_.resize(parallel() ? kStripes : 1);
  if (parallel()) {
    owned_locks_ = std::make_unique<std::array<Lock, kStripes>>();
    locks_ = owned_locks_->data();
  }
  if (space != nullptr && plan_.provisional()) undo_ = std::make_unique<RaceUndo>(*space, *shadow_);
}

bool RaceTeam::watches(std::uint64_t address) const noexcept {
  return plan_.all || std::ranges::any_of(plan_.watched, [address](const Device::Extent& extent) {
           return address - extent.start < extent.bytes;
         });
}

std::uint64_t RaceTeam::list_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const Lists& lists : lists_) {
    for (const auto& [granule, entries] : lists) bytes += 64 + entries.capacity() * sizeof(Entry);
  }
  return bytes;
}

void RaceTeam::Hold::take(std::atomic<bool>& lock) noexcept {
  for (std::uint32_t tries = 0; lock.exchange(true, std::memory_order_acquire); ++tries) {
    // The owner of the lock may not be scheduled.
    if (tries > 100) std::this_thread::yield();
  }
}

}  // namespace ptxgen::inline v0::emulator
