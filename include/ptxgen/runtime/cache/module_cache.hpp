// ptxgen/runtime/cache/module_cache.hpp - the cache of loaded modules
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/runtime/module/module.hpp"
#include "ptxgen/support/hidden.hpp"
#include "ptxgen/support/settings.hpp"
#include "ptxgen/support/trace.hpp"

namespace ptxgen::inline v0 {

struct CacheEntry;  // src/runtime/cache/module_store.hpp
class CacheCore;    // src/runtime/cache/cache_core.hpp

/// Called for each kernel that is ready, from one thread at a time.
struct PrepareProgress {
  void (*report)(void* user, std::size_t done, std::size_t total) = nullptr;
  void* user = nullptr;
};

/// Every input that can change a loaded module, as plain data; the key of the memory layer. Device
/// ordinals, device pointers, times and the environment are not inputs; of this process only. Start
/// from `ModuleCache::key` and set `values`, `plan` and `passes`.
struct ModuleKey {
  /// Hash of the kernel's text or name; of a described kernel, hash of its name and the address
  /// that stands for its C++ type.
  std::array<std::uint64_t, 2> kernel{};
  std::array<std::uint64_t, 6> values{};  ///< build-time values (shape, constants), then zeros
  std::uint64_t plan = 0;                 ///< the planner's choice, packed by the caller
  std::uint64_t passes = 0;               ///< passes and gates, packed by the caller
  std::uint64_t target = 0;               ///< sm and variant that the kernel is built for
  std::uint64_t options = 0;              ///< ModuleOptions after normalisation
  std::uint64_t device = 0;               ///< hash of the device properties that plans depend on
  friend bool operator==(const ModuleKey&, const ModuleKey&) = default;
};
static_assert(sizeof(ModuleKey) == 13 * sizeof(std::uint64_t), "hashed as bytes: no padding");

/// A key with its hash, for a key that is looked up again and again.
struct HashedKey {
  ModuleKey key;
  std::uint64_t hash = 0;
};
[[nodiscard]] HashedKey hashed(const ModuleKey& key) noexcept;

/// A kernel as text, made on a miss.
struct KernelText {
  std::string ptx;
  std::string entry;   ///< the kernel in it
  ptx::Module module;  ///< the module that was printed, for messages; may be empty
  StageTimes stages;   ///< times of "build", "passes", "gates", "print"
};

/// Makes the text: `make(object)`. Called at most once per miss, with no lock held; `prepare` calls
/// it in another thread. An `Error` that it throws reaches every thread that waits for the kernel;
/// other exceptions reach them as `Error` (Stage::Cache, "maker-failed"). It must not request its
/// own key.
struct KernelMaker {
  KernelText (*make)(const void* object) = nullptr;
  const void* object = nullptr;
};

/// The layer that a module came from.
enum class CacheLayer : std::uint8_t {
  Compiled,     ///< no layer had it: assembled, or compiled by the driver
  Disk,         ///< the cache folder
  LowerFolder,  ///< the read-only folder below it
  DriverHint,   ///< the driver's own cache, inferred from its empty log
};
/// "compiled", "disk", "lower-folder", "driver".
[[nodiscard]] std::string_view to_string(CacheLayer layer) noexcept;

/// How a module was loaded.
struct LoadRecord {
  CacheLayer layer = CacheLayer::Compiled;
  std::string generator;  ///< "nvJitLink 13.0", or "driver" if the driver compiles the text
  std::string ptx_hash;   ///< of the text, 32 hexadecimal digits; also the dumped PTX's name
  /// From spec to loaded module: the stages of the text, then "disk" (the lookup), "assemble" and
  /// "load" where they ran.
  StageTimes stages;
  std::uint64_t image_bytes = 0;  ///< size of the loaded image
};

/// A counted reference to a loaded module, which is unloaded after the last reference is gone.
/// Cheap to copy.
///
/// Threads: as a pointer; the module may be used from any thread at once.
class CachedModule {
 public:
  CachedModule() noexcept = default;
  CachedModule(const CachedModule& other) noexcept;
  CachedModule(CachedModule&& other) noexcept
      : entry_(std::exchange(other.entry_, nullptr)), function_(other.function_) {}
  CachedModule& operator=(CachedModule other) noexcept {
    std::swap(entry_, other.entry_);
    std::swap(function_, other.function_);
    return *this;
  }
  ~CachedModule() {
    if (entry_ != nullptr) release();
  }

  [[nodiscard]] explicit operator bool() const noexcept { return entry_ != nullptr; }
  /// Precondition of both: not empty.
  [[nodiscard]] const Function& function() const noexcept { return *function_; }
  [[nodiscard]] const LoadRecord& record() const noexcept;

 private:
  friend class CacheCore;
  explicit CachedModule(CacheEntry* entry) noexcept;
  void release() noexcept;

  CacheEntry* entry_ = nullptr;
  const Function* function_ = nullptr;
};

/// Which layers are used.
enum class CacheMode : std::uint8_t {
  ReadWrite,
  ReadOnly,    ///< the disk is read, never written
  MemoryOnly,  ///< no disk
  Off,         ///< no memory layer either: every call compiles
};
/// "on", "read-only", "memory", "off"; the values of PTXGEN_CACHE.
[[nodiscard]] std::string_view to_string(CacheMode mode) noexcept;
/// Throws `Error` (Stage::Cache, "bad-cache-mode") listing the names.
[[nodiscard]] CacheMode cache_mode(std::string_view name);

struct ModuleCacheOptions {
  CacheMode mode = CacheMode::ReadWrite;
  /// Loaded modules that are kept; modules in use are kept in any case.
  std::size_t max_modules = 1024;
  std::string folder;                                   ///< empty: no disk layer
  std::string lower_folder;                             ///< read after `folder`, never written
  std::uint64_t disk_bytes = std::uint64_t{512} << 20;  ///< budget of `folder`
  bool per_host = false;  ///< one folder per host name, for home directories that hosts share
  /// Threads of `prepare`; 0: as many as the machine has processors.
  unsigned threads = 0;

  /// Mode, folder and lower folder of the settings (PTXGEN_CACHE, PTXGEN_CACHE_DIR,
  /// PTXGEN_CACHE_LOWER_DIR).
  [[nodiscard]] static ModuleCacheOptions from(const Settings& settings);
};

/// Counted since the cache was made.
struct CacheStatistics {
  std::uint64_t hits = 0;      ///< found in memory
  std::uint64_t misses = 0;    ///< loaded by the calling thread
  std::uint64_t waits = 0;     ///< waited for another thread to load it
  std::uint64_t compiles = 0;  ///< misses that the disk layers did not serve
  std::uint64_t disk_hits = 0;
  std::uint64_t lower_hits = 0;    ///< of the disk hits, those of the lower folder
  std::uint64_t driver_hints = 0;  ///< of the compiles, those for which CacheLayer::DriverHint
  std::uint64_t failures = 0;      ///< misses that ended in an error
  std::uint64_t evictions = 0;
  std::uint64_t deferred_unloads = 0;  ///< that waited for the end of a capture
  std::uint64_t disk_stores = 0;
  std::uint64_t disk_bad_entries = 0;
  std::uint64_t disk_evictions = 0;
  std::uint64_t disk_failures = 0;  ///< failed system calls; the run went on
  std::uint64_t modules = 0;        ///< in memory now
  /// Since the last `prepare` ended; 0: it covered every launch.
  std::uint64_t compiles_since_prepare = 0;
  std::uint64_t misses_since_prepare = 0;
};

/// Modules of one context. A hit costs one hash of plain data and one lookup under a shared lock,
/// no allocation. On a miss the module is made once with no lock held, however many threads request
/// it; all get it, or the same `Error`, and a later call tries again.
///
/// The disk layer is a folder of images that processes share (PTXGEN_CACHE_DIR): machine code if
/// there is an assembler for the device, else PTX. It never stops a run: a damaged entry is
/// dropped, made again and reported once as a warning in the context's log.
///
/// `ModuleOptions::cold` bypasses all layers and the driver's own cache: that is keyed by the text,
/// which gets a different comment each time. Nothing is kept.
///
/// Threads: all members from any thread at once.
class ModuleCache {
 public:
  /// `context` must outlive the cache, in its place.
  explicit ModuleCache(const Context& context,
                       const Settings& settings = Settings::from_environment());
  ModuleCache(const Context& context, const ModuleCacheOptions& options,
              const Settings& settings = Settings::from_environment());
  ModuleCache(ModuleCache&&) noexcept;
  ModuleCache& operator=(ModuleCache&&) noexcept;
  ~ModuleCache();

  /// The key of a kernel identified by a unique name, for the context's device and target. In
  /// loops, make it once, copy it and set `values`.
  [[nodiscard]] ModuleKey key(std::string_view kernel, const ModuleOptions& options = {}) const;
  /// The key of a kernel identified by its text.
  [[nodiscard]] ModuleKey key_of_text(std::string_view ptx,
                                      const ModuleOptions& options = {}) const;

  /// The module in memory, or an empty reference. Only hits are counted.
  [[nodiscard]] CachedModule find(const ModuleKey& key) const noexcept { return find(hashed(key)); }
  [[nodiscard]] CachedModule find(const HashedKey& key) const noexcept;
  /// The module of that key; on a miss `maker` makes its text. `options` must be those of the key.
  /// Throws what `maker` throws, and `Error` (Stage::Load) as Module::load.
  [[nodiscard]] CachedModule get(const ModuleKey& key, const ModuleOptions& options,
                                 KernelMaker maker);
  /// The same for anything that can be called without arguments and returns a KernelText.
  template <class Make>
  requires requires(const Make& make) { KernelText(make()); }
  [[nodiscard]] CachedModule get(const ModuleKey& key, const ModuleOptions& options,
                                 const Make& make) {
    const auto call = [](const void* object) -> KernelText {
      return (*static_cast<const Make*>(object))();
    };
    return get(key, options, KernelMaker{call, &make});
  }

  struct Request {
    ModuleKey key;
    KernelMaker maker;
  };
  /// Loads modules in parallel; launches nothing. Throws the first `Error`, in the order of the
  /// list, after all have been tried.
  void prepare(std::span<const Request> requests, const ModuleOptions& options = {},
               PrepareProgress progress = {});

  [[nodiscard]] CacheStatistics statistics() const;
  /// Empties the memory layer; modules in use stay loaded until they are released. For a context
  /// that is about to be reset.
  void clear();
  /// The folder of the disk layer; empty: none.
  [[nodiscard]] const std::string& folder() const noexcept;

 private:
  struct State;
  Hidden<State> state_;
};

}  // namespace ptxgen::inline v0
