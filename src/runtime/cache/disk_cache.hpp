// src/runtime/cache/disk_cache.hpp - compiled kernels kept in a folder
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/cache/cache_entry.hpp"
#include "support/file_system.hpp"

namespace ptxgen::inline v0 {

enum class DiskMode : std::uint8_t {
  Off,
  ReadOnly,  ///< nothing on the disk is changed: no entry, no time of use, no clean-up
  ReadWrite,
};

struct DiskCacheOptions {
  /// Made on the first store. Empty (no home folder, say): only `lower_folder` is read.
  std::string folder;
  /// A second folder, searched after `folder` and never written; empty: none.
  std::string lower_folder;
  DiskMode mode = DiskMode::ReadWrite;
  std::uint64_t budget_bytes = std::uint64_t{512} << 20;  ///< of all entries in `folder`
  /// Age after which a killed writer's file is removed.
  std::int64_t stale_after_s = 3600;
  /// Whether an entry is flushed to the disk before it is renamed. Otherwise a loss of power can
  /// leave a damaged entry, which costs a warning and a compilation.
  bool sync = true;
  /// Gets one line for each damaged entry and one for each kind of error of a folder. Called with
  /// no lock held, from the thread that observed it. May be empty.
  std::function<void(std::string_view)> warn;
};

/// Which folder an image came from.
enum class DiskLayer : std::uint8_t { None, Folder, LowerFolder };

struct DiskEntry {
  DiskLayer layer = DiskLayer::None;  ///< None: not found, the rest is empty
  std::vector<std::byte> file;        ///< owns the bytes of the spans
  std::span<const std::byte> metadata;
  std::span<const std::byte> image;
  explicit operator bool() const noexcept { return layer != DiskLayer::None; }
};

/// Counted since the cache was made.
struct DiskStatistics {
  std::uint64_t hits = 0;
  std::uint64_t lower_hits = 0;  ///< hits of the lower folder
  std::uint64_t misses = 0;
  std::uint64_t stores = 0;
  std::uint64_t bad_entries = 0;  ///< damaged, or rejected by the driver
  std::uint64_t evictions = 0;
  std::uint64_t stale_files = 0;  ///< leftovers of killed writers that were removed
  std::uint64_t failures = 0;     ///< failed system calls
};

/// A folder of files, one for each key: `HASH.ptxgen` with the key's hash in hexadecimal. Other
/// files in the folder are never touched, folders never removed.
///
/// An entry is written to a temporary file and renamed atomically, so a reader of any process or
/// machine sees complete entries or none. A damaged entry is removed, reported once and not found.
/// A system error (no permission, no space, no handle) makes an entry not found or not stored and
/// removes nothing.
///
/// No member throws; all may be called from several threads and several processes at once.
class DiskCache {
 public:
  /// Accesses no file. `files` may be null: the system's.
  explicit DiskCache(DiskCacheOptions options, std::shared_ptr<FileSystem> files = nullptr);

  /// Whether a load can find anything.
  [[nodiscard]] bool reads() const noexcept;
  /// Whether a store can succeed; false after the folder turned out to be read-only.
  [[nodiscard]] bool writes() const noexcept;

  /// The entry of that key. Keys are compared byte for byte.
  [[nodiscard]] DiskEntry load(std::span<const std::byte> key) noexcept;
  /// Publishes an entry, replacing an existing one. Returns whether it is on the disk. Nothing is
  /// read back.
  bool store(std::span<const std::byte> key, std::span<const std::byte> metadata,
             std::span<const std::byte> image) noexcept;
  /// Treats an entry with an unusable image as damaged: removes it with a warning. `why` is a
  /// clause like "the driver rejects its image".
  void drop(std::span<const std::byte> key, std::string_view why) noexcept;

  [[nodiscard]] DiskStatistics statistics() const noexcept;
  [[nodiscard]] const DiskCacheOptions& options() const noexcept { return options_; }

  /// The name of a key's file, without folder.
  [[nodiscard]] static std::string file_name(std::span<const std::byte> key);

 private:
  DiskEntry load_from(DiskLayer layer, const std::string& name, std::span<const std::byte> key);
  int read_all(const std::string& path, std::vector<std::byte>& content, FileInfo& info);
  bool store_file(const std::string& name, std::span<const std::byte> content);
  int write_all(FileSystem::Handle handle, std::span<const std::byte> content);
  int create_temporary(const std::string& name, std::string& path, FileSystem::Handle& handle);
  void condemn(DiskLayer layer, const std::string& name, std::string_view why);
  [[nodiscard]] bool is_condemned(const std::string& path);
  void keep_within_budget(const std::string& just_stored, std::uint64_t bytes);
  void clear_up(const std::string& just_stored);
  void report(const std::string& folder, const char* verb, int status);
  void warn(const std::string& text) noexcept;
  [[nodiscard]] const std::string& folder_of(DiskLayer layer) const noexcept;

  DiskCacheOptions options_;
  std::shared_ptr<FileSystem> files_;
  std::atomic<bool> writable_{true};  // until a write to the folder fails
  std::atomic<std::uint64_t> next_temporary_{0};

  std::mutex memory_mutex_;
  std::set<std::string> condemned_;  // bad entries that could not be removed: not read again
  std::set<std::pair<std::string, int>> reported_;  // folders and what was wrong with them

  std::mutex budget_mutex_;  // a thread that finds it locked leaves the budget to the holder
  std::atomic<std::uint64_t> unaccounted_bytes_{0};
  // The rest is guarded by budget_mutex_.
  std::uint64_t known_bytes_ = 0;  // of all entries at the last scan, and of ours since
  std::uint64_t fresh_bytes_ = 0;  // of ours since the last scan
  bool looked_ = false;

  struct Counters {
    std::atomic<std::uint64_t> hits{0}, lower_hits{0}, misses{0}, stores{0}, bad_entries{0},
        evictions{0}, stale_files{0}, failures{0};
  };
  mutable Counters counters_;
};

}  // namespace ptxgen::inline v0
