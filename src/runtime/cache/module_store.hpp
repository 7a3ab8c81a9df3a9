// src/runtime/cache/module_store.hpp - the memory layer: lookup, single flight, eviction
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>

#include "ptxgen/runtime/cache/module_cache.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0 {

/// A loaded module of a device; the destructor unloads it.
class LoadedPayload {
 public:
  LoadedPayload() = default;
  LoadedPayload(const LoadedPayload&) = delete;
  LoadedPayload& operator=(const LoadedPayload&) = delete;
  virtual ~LoadedPayload() = default;
  /// The kernel; null only where there is no device (tests).
  [[nodiscard]] virtual const Function* function() const noexcept { return nullptr; }
};

class UnloadQueue;

/// One loaded module and its record. Counted references: one of the store while the entry is in its
/// table, one of each CachedModule.
struct CacheEntry {
  std::unique_ptr<LoadedPayload> payload;
  LoadRecord record;

  std::atomic<std::uint32_t> users{1};
  std::atomic<std::uint64_t> hits{0};
  std::atomic<std::uint64_t> last_used{0};  // the store's clock
  std::shared_ptr<UnloadQueue> unloads;  // receives the entry when its last reference is released
  CacheEntry* next = nullptr;            // in that queue
};

/// Unloads modules without references: at once, or later if `may_unload` returns false (unloading
/// would break a running capture). Lives as long as any entry.
class UnloadQueue {
 public:
  explicit UnloadQueue(std::function<bool()> may_unload) : may_unload_(std::move(may_unload)) {}
  UnloadQueue(const UnloadQueue&) = delete;
  UnloadQueue& operator=(const UnloadQueue&) = delete;
  ~UnloadQueue();

  /// Takes an entry without users. No lock is held while a module is unloaded.
  void take(CacheEntry* entry) noexcept;
  /// Unloads the waiting entries if that is allowed.
  void flush() noexcept;
  [[nodiscard]] std::uint64_t deferred() const noexcept { return deferred_; }

 private:
  [[nodiscard]] bool may_unload() const noexcept;

  std::function<bool()> may_unload_;
  std::mutex mutex_;
  CacheEntry* waiting_ = nullptr;  // guarded by mutex_
  std::atomic<std::uint64_t> deferred_{0};
};

/// Adds and returns a reference.
void retain(CacheEntry* entry) noexcept;
void release(CacheEntry* entry) noexcept;

struct StoreStatistics {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t waits = 0;
  std::uint64_t failures = 0;
  std::uint64_t evictions = 0;
  std::uint64_t deferred_unloads = 0;
  std::uint64_t modules = 0;
};

/// Entries by key. All entries that members return carry a reference for the caller.
///
/// Threads: all members from any thread at once. No member calls `make`, unloads or waits with the
/// table locked.
class ModuleStore {
 public:
  using Make = std::function<std::unique_ptr<CacheEntry>()>;

  ModuleStore(std::size_t max_modules, std::function<bool()> may_unload);
  ModuleStore(const ModuleStore&) = delete;
  ModuleStore& operator=(const ModuleStore&) = delete;
  /// No other thread may be in a member.
  ~ModuleStore();

  /// Null if it is not there. One lookup under the shared lock, no allocation.
  [[nodiscard]] CacheEntry* find(const HashedKey& key) noexcept;
  [[nodiscard]] CacheEntry* find(const ModuleKey& key) noexcept { return find(hashed(key)); }
  /// The entry. If it is missing, one thread per key calls `make` while the others wait. All get a
  /// copy of its exception: an `Error` unchanged, anything else as the message of one
  /// (Stage::Cache, "maker-failed").
  [[nodiscard]] CacheEntry* get(const ModuleKey& key, const Make& make);
  /// An entry that is not kept.
  [[nodiscard]] CacheEntry* adopt(std::unique_ptr<CacheEntry> entry);
  void clear() noexcept;
  [[nodiscard]] StoreStatistics statistics();

 private:
  struct KeyHash {
    using is_transparent = void;
    std::size_t operator()(const ModuleKey& key) const noexcept {
      return static_cast<std::size_t>(hashed(key).hash);
    }
    std::size_t operator()(const HashedKey& key) const noexcept {
      return static_cast<std::size_t>(key.hash);
    }
  };
  struct KeyEqual {
    using is_transparent = void;
    bool operator()(const ModuleKey& a, const ModuleKey& b) const noexcept { return a == b; }
    bool operator()(const HashedKey& a, const ModuleKey& b) const noexcept { return a.key == b; }
    bool operator()(const ModuleKey& a, const HashedKey& b) const noexcept { return a == b.key; }
  };
  /// A miss that is being served.
  struct Flight {
    std::mutex mutex;
    std::condition_variable landed;
    bool done = false;
    CacheEntry* entry = nullptr;  // with the flight's own reference
    std::optional<Error> error;
    ~Flight();
  };

  [[nodiscard]] CacheEntry* find_counted(const HashedKey& key) noexcept;
  [[nodiscard]] static CacheEntry* wait_for(Flight& flight);
  void land(const ModuleKey& key, const std::shared_ptr<Flight>& flight, CacheEntry* entry);
  [[nodiscard]] CacheEntry* evict_one(const CacheEntry* but_not);

  const std::size_t max_modules_;
  const std::shared_ptr<UnloadQueue> unloads_;
  std::atomic<std::uint64_t> clock_{1};  // incremented by each insertion
  std::shared_mutex mutex_;              // guards the two tables and retired_hits_
  std::unordered_map<ModuleKey, CacheEntry*, KeyHash, KeyEqual> entries_;
  std::unordered_map<ModuleKey, std::shared_ptr<Flight>, KeyHash> flights_;
  std::uint64_t retired_hits_ = 0;  // of entries that are not in the table any more
  std::atomic<std::uint64_t> misses_{0}, waits_{0}, failures_{0}, evictions_{0};
};

}  // namespace ptxgen::inline v0
