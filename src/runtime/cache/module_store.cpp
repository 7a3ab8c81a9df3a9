// src/runtime/cache/module_store.cpp - the memory layer: lookup, single flight, eviction
#include "runtime/cache/module_store.hpp"

#include <utility>
#include <vector>

#include "support/hash.hpp"

namespace ptxgen::inline v0 {

void retain(CacheEntry* entry) noexcept { entry->users.fetch_add(1, std::memory_order_relaxed); }

void release(CacheEntry* entry) noexcept {
  if (entry->users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // The queue must outlive the call; the entry, and with it this reference, may be destroyed in it.
  const std::shared_ptr<UnloadQueue> unloads = std::move(entry->unloads);
  unloads->take(entry);
}

UnloadQueue::~UnloadQueue() {
  // The last owner is gone; nothing could do it later.
  while (waiting_ != nullptr) delete std::exchange(waiting_, waiting_->next);
}

bool UnloadQueue::may_unload() const noexcept {
  try {
    return !may_unload_ || may_unload_();
  } catch (...) {
    return false;
  }
}

void UnloadQueue::take(CacheEntry* entry) noexcept {
  if (!may_unload()) {
    deferred_.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    entry->next = std::exchange(waiting_, entry);
    return;
  }
  delete entry;
  flush();
}

void UnloadQueue::flush() noexcept {
  CacheEntry* waiting = nullptr;
  {
    // The predicate belongs to the device, which lives while entries wait here.
    const std::lock_guard lock(mutex_);
    if (waiting_ == nullptr || !may_unload()) return;
    waiting = std::exchange(waiting_, nullptr);
  }
  while (waiting != nullptr) delete std::exchange(waiting, waiting->next);
}

ModuleStore::Flight::~Flight() {
  if (entry != nullptr) release(entry);
}

ModuleStore::ModuleStore(std::size_t max_modules, std::function<bool()> may_unload)
    : max_modules_(max_modules), unloads_(std::make_shared<UnloadQueue>(std::move(may_unload))) {}

ModuleStore::~ModuleStore() { clear(); }

HashedKey hashed(const ModuleKey& key) noexcept { return {key, hash64(&key, sizeof key)}; }

CacheEntry* ModuleStore::find_counted(const HashedKey& key) noexcept {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  CacheEntry* entry = found->second;
  retain(entry);
  entry->hits.fetch_add(1, std::memory_order_relaxed);
  // The clock only advances with insertions, so hits read a shared cache line.
  const std::uint64_t now = clock_.load(std::memory_order_relaxed);
  if (entry->last_used.load(std::memory_order_relaxed) != now) {
    entry->last_used.store(now, std::memory_order_relaxed);
  }
  return entry;
}

CacheEntry* ModuleStore::find(const HashedKey& key) noexcept {
  const std::shared_lock lock(mutex_);
  return find_counted(key);
}

CacheEntry* ModuleStore::get(const ModuleKey& key, const Make& make) {
  const HashedKey with_hash = hashed(key);
  if (CacheEntry* entry = find(with_hash)) return entry;
  std::shared_ptr<Flight> flight;
  bool ours = false;
  {
    auto fresh = std::make_shared<Flight>();
    const std::unique_lock lock(mutex_);
    if (CacheEntry* entry = find_counted(with_hash)) return entry;
    const auto [at, inserted] = flights_.try_emplace(key, std::move(fresh));
    flight = at->second;
    ours = inserted;
  }
  if (!ours) {
    waits_.fetch_add(1, std::memory_order_relaxed);
    return wait_for(*flight);
  }

  misses_.fetch_add(1, std::memory_order_relaxed);
  try {
    CacheEntry* entry = adopt(make());
    retain(entry);  // for the flight: an eviction cannot take it from waiting threads
    flight->entry = entry;
    land(key, flight, entry);
    return entry;
  } catch (const Error& error) {
    flight->error.emplace(error);
  } catch (const std::exception& error) {
    // Foreign exceptions cannot be copied, and one object in several threads would race.
    flight->error.emplace(Stage::Cache, "maker-failed",
                          "making the kernel's text failed: " + std::string(error.what()));
  } catch (...) {
    flight->error.emplace(Stage::Cache, "maker-failed",
                          "making the kernel's text failed with an exception of an unknown type");
  }
  failures_.fetch_add(1, std::memory_order_relaxed);
  land(key, flight, nullptr);
  throw Error(*flight->error);
}

CacheEntry* ModuleStore::wait_for(Flight& flight) {
  std::unique_lock lock(flight.mutex);
  flight.landed.wait(lock, [&] { return flight.done; });
  if (flight.error) throw Error(*flight.error);  // a copy: the catcher may change it
  retain(flight.entry);
  return flight.entry;
}

CacheEntry* ModuleStore::adopt(std::unique_ptr<CacheEntry> entry) {
  entry->unloads = unloads_;
  return entry.release();
}

void ModuleStore::land(const ModuleKey& key, const std::shared_ptr<Flight>& flight,
                       CacheEntry* entry) {
  std::vector<CacheEntry*> evicted;
  {
    const std::unique_lock lock(mutex_);
    flights_.erase(key);
    try {
      if (entry != nullptr && max_modules_ != 0) {
        entry->last_used = clock_.fetch_add(1, std::memory_order_relaxed) + 1;
        if (entries_.emplace(key, entry).second) retain(entry);
        evicted.reserve(entries_.size() > max_modules_ ? entries_.size() - max_modules_ : 0);
        while (entries_.size() > max_modules_) {
          CacheEntry* old = evict_one(entry);
          if (old == nullptr) break;
          evicted.push_back(old);
        }
      }
    } catch (const std::bad_alloc&) {
      // Not kept; waiting threads still get it.
    }
  }
  {
    const std::lock_guard lock(flight->mutex);
    flight->done = true;
  }
  flight->landed.notify_all();
  for (CacheEntry* old : evicted) release(old);
  evictions_.fetch_add(evicted.size(), std::memory_order_relaxed);
  unloads_->flush();
}

// The least recently used entry without references: evicting one in use would free nothing and make
// the next call compile again.
CacheEntry* ModuleStore::evict_one(const CacheEntry* but_not) {
  auto oldest = entries_.end();
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    const CacheEntry& entry = *at->second;
    // Under the unique lock no thread can take a first reference.
    if (at->second == but_not || entry.users.load(std::memory_order_relaxed) != 1) continue;
    if (oldest == entries_.end() || entry.last_used.load(std::memory_order_relaxed) <
                                        oldest->second->last_used.load(std::memory_order_relaxed)) {
      oldest = at;
    }
  }
  if (oldest == entries_.end()) return nullptr;
  CacheEntry* entry = oldest->second;
  retired_hits_ += entry->hits.load(std::memory_order_relaxed);
  entries_.erase(oldest);
  return entry;
}

void ModuleStore::clear() noexcept {
  decltype(entries_) old;
  {
    const std::unique_lock lock(mutex_);
    old.swap(entries_);
    for (const auto& [key, entry] : old) {
      retired_hits_ += entry->hits.load(std::memory_order_relaxed);
    }
  }
  for (const auto& [key, entry] : old) release(entry);
  unloads_->flush();
}

StoreStatistics ModuleStore::statistics() {
  StoreStatistics result;
  {
    const std::shared_lock lock(mutex_);
    result.hits = retired_hits_;
    result.modules = entries_.size();
    for (const auto& [key, entry] : entries_) {
      result.hits += entry->hits.load(std::memory_order_relaxed);
    }
  }
  result.misses = misses_;
  result.waits = waits_;
  result.failures = failures_;
  result.evictions = evictions_;
  result.deferred_unloads = unloads_->deferred();
  return result;
}

}  // namespace ptxgen::inline v0
