// src/runtime/cache/cache_core.hpp - the module cache without a device
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/runtime/cache/module_cache.hpp"
#include "runtime/cache/cache_key.hpp"
#include "runtime/cache/disk_cache.hpp"
#include "runtime/cache/module_store.hpp"

namespace ptxgen::inline v0 {

/// The assembler that is used before a load.
struct Generator {
  std::string name;     ///< "nvJitLink"; empty: none, the text itself is loaded and stored
  std::string version;  ///< empty: not known
};

/// The device as the cache uses it; tests have their own. All members may be called from several
/// threads at once.
class CacheBackend {
 public:
  CacheBackend() = default;
  CacheBackend(const CacheBackend&) = delete;
  CacheBackend& operator=(const CacheBackend&) = delete;
  virtual ~CacheBackend() = default;

  /// The assembler for a kernel with these options.
  [[nodiscard]] virtual Generator generator(const ModuleOptions& options) = 0;
  /// The target of the assembly: "sm_90a".
  [[nodiscard]] virtual std::string target(const KernelText& text) = 0;
  /// Machine code. Throws `Error`: the driver is asked to compile the text then.
  [[nodiscard]] virtual std::vector<std::byte> assemble(const KernelText& text,
                                                        const ModuleOptions& options) = 0;
  /// Throws `Error`; `is_image_fault` tells whether the image is at fault.
  [[nodiscard]] virtual std::unique_ptr<LoadedPayload> load_image(std::span<const std::byte> image,
                                                                  const KernelText& text) = 0;
  struct LoadedText {
    std::unique_ptr<LoadedPayload> payload;
    bool driver_hint = false;  ///< the driver's own cache seems to have served it
  };
  /// Compiles and loads the text with the driver. Throws `Error`.
  [[nodiscard]] virtual LoadedText load_text(const KernelText& text,
                                             const ModuleOptions& options) = 0;
  /// False while unloading a module could break a capture.
  [[nodiscard]] virtual bool may_unload() { return true; }
};

/// The level for an assembler, which supports 0 to 3; the driver's JIT also has level 4, its
/// default.
[[nodiscard]] unsigned assembler_level(std::uint32_t optimization) noexcept;

/// Whether a load failed because of the image, not the device or its state.
[[nodiscard]] bool is_image_fault(const Error& error) noexcept;

struct CacheCoreOptions {
  CacheMode mode = CacheMode::ReadWrite;
  std::size_t max_modules = 1024;
  unsigned threads = 0;
  DiskCacheOptions disk;
  Trace trace;
};

/// The cache with all layers. Threads: as ModuleCache.
class CacheCore {
 public:
  CacheCore(CacheCoreOptions options, std::shared_ptr<CacheBackend> backend,
            std::shared_ptr<FileSystem> files = nullptr);

  [[nodiscard]] CachedModule find(const HashedKey& key) noexcept;
  [[nodiscard]] CachedModule find(const ModuleKey& key) noexcept { return find(hashed(key)); }
  [[nodiscard]] CachedModule get(const ModuleKey& key, const ModuleOptions& options,
                                 KernelMaker maker);
  void prepare(std::span<const ModuleCache::Request> requests, const ModuleOptions& options,
               PrepareProgress progress);
  [[nodiscard]] CacheStatistics statistics();
  void clear() { store_.clear(); }
  [[nodiscard]] const DiskCache& disk() const noexcept { return disk_; }
  /// The entry of a reference; for tests without a device.
  [[nodiscard]] static const LoadedPayload* payload(const CachedModule& module) noexcept;

 private:
  /// Bytes for the disk, kept until no thread waits for the module.
  struct Publication {
    std::vector<std::byte> key;
    std::vector<std::byte> image;
    std::string metadata;
  };
  using Entry = std::unique_ptr<CacheEntry>;

  [[nodiscard]] Entry make(const ModuleOptions& options, KernelMaker maker,
                           Publication& publication);
  [[nodiscard]] Entry from_disk(const std::vector<std::byte>& key, const KernelText& text,
                                const ModuleOptions& options, Entry entry);
  void compile(const KernelText& text, const ModuleOptions& options, const Generator& generator,
               Entry& entry, std::vector<std::byte>& image);
  [[nodiscard]] std::vector<std::byte> disk_key(const KernelText& text,
                                                const ModuleOptions& options,
                                                const Generator& generator);

  const CacheCoreOptions options_;
  const std::shared_ptr<CacheBackend> backend_;
  DiskCache disk_;
  ModuleStore store_;
  /// The device accepts no machine code (as the emulated one): stop assembling.
  std::atomic<bool> images_refused_{false};
  std::atomic<bool> images_taken_{false};
  std::atomic<std::uint64_t> compiles_{0}, disk_hits_{0}, lower_hits_{0}, driver_hints_{0};
  std::atomic<std::uint64_t> bypasses_{0};                            // cold or with the cache off
  std::atomic<std::uint64_t> compiles_before_{0}, misses_before_{0};  // at the end of prepare
};

}  // namespace ptxgen::inline v0
