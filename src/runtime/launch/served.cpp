// src/runtime/launch/served.cpp - what serves a call of a family, by shape
#include "runtime/launch/served.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::size_t kFirstSlots = 64;

}  // namespace

ServedCalls::ServedCalls() {
  all_.push_back(std::make_unique<const Slots>(kFirstSlots));
  slots_.store(all_.back().get(), std::memory_order_release);
}

void ServedCalls::Slots::put(const Served& entry) const noexcept {
  std::size_t to = hash(entry.family, entry.shape) & mask;
  while (at[to].load(std::memory_order_relaxed) != nullptr) to = (to + 1) & mask;
  at[to].store(&entry, std::memory_order_release);
}

const Served& ServedCalls::add(std::unique_ptr<const Served> entry) {
  const std::lock_guard lock(mutex_);
  if (const Served* const known = find(entry->family, entry->shape)) return *known;
  entries_.push_back(std::move(entry));
  const Slots& now = *slots_.load(std::memory_order_relaxed);
  if (2 * entries_.size() <= now.mask + 1) {
    now.put(*entries_.back());
    return *entries_.back();
  }
  auto larger = std::make_unique<const Slots>(2 * (now.mask + 1));
  for (const auto& one : entries_) larger->put(*one);
  all_.push_back(std::move(larger));
  slots_.store(all_.back().get(), std::memory_order_release);
  return *entries_.back();
}

}  // namespace ptxgen::inline v0
