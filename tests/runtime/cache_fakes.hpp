// tests/runtime/cache_fakes.hpp - a device that only counts, for tests of the cache
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "ptxgen/support/error.hpp"
#include "runtime/cache/cache_core.hpp"
#include "runtime/cache_files.hpp"

namespace ptxgen::test {

/// Opened once; until then `wait` waits.
class Gate {
 public:
  void open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    opened_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

inline Error driver_error(int status, const std::string& message) {
  Error error(Stage::Load, "driver-call", message);
  error.driver_status = status;
  return error;
}

class FakeDevice : public CacheBackend {
 public:
  struct Loaded : LoadedPayload {
    Loaded(FakeDevice& of, std::string what) : device(of), content(std::move(what)) {
      const int now = ++device.live;
      int max = device.max_live;
      while (max < now && !device.max_live.compare_exchange_weak(max, now)) continue;
    }
    ~Loaded() override { --device.live; }
    FakeDevice& device;
    const std::string content;  ///< "code of TEXT" or the text itself
  };

  // What it is; set before use.
  Generator tool{"fake-assembler", "1.0"};
  std::string target_name = "sm_90";
  std::function<void(const KernelText&)> on_assemble;  ///< may throw
  std::function<void(std::span<const std::byte>)> on_load_image;
  std::function<void(const KernelText&)> on_load_text;
  bool empty_log = false;

  std::atomic<bool> capturing{false};
  std::atomic<int> assembles{0}, image_loads{0}, text_loads{0}, live{0}, max_live{0};

  Generator generator(const ModuleOptions&) override { return tool; }
  std::string target(const KernelText&) override { return target_name; }
  std::vector<std::byte> assemble(const KernelText& text, const ModuleOptions&) override {
    ++assembles;
    if (on_assemble) on_assemble(text);
    return bytes_of("code of " + text.ptx);
  }
  std::unique_ptr<LoadedPayload> load_image(std::span<const std::byte> image,
                                            const KernelText&) override {
    ++image_loads;
    if (on_load_image) on_load_image(image);
    return std::make_unique<Loaded>(*this, text_of(image));
  }
  LoadedText load_text(const KernelText& text, const ModuleOptions&) override {
    ++text_loads;
    if (on_load_text) on_load_text(text);
    return {std::make_unique<Loaded>(*this, text.ptx), empty_log};
  }
  bool may_unload() override { return !capturing; }
};

/// A cache on such a device, with what it warned of.
struct FakeCache {
  std::shared_ptr<FakeDevice> device = std::make_shared<FakeDevice>();
  std::shared_ptr<std::vector<std::string>> warnings = std::make_shared<std::vector<std::string>>();
  std::unique_ptr<CacheCore> core;

  explicit FakeCache(CacheCoreOptions options = {}) {
    options.disk.warn = [kept = warnings](std::string_view text) { kept->emplace_back(text); };
    options.disk.sync = false;
    core = std::make_unique<CacheCore>(std::move(options), device);
  }
  CacheCore* operator->() const { return core.get(); }

  template <class Make>
  CachedModule get(const ModuleKey& key, const Make& make,
                   const ModuleOptions& options = {}) const {
    const auto call = [](const void* object) -> KernelText {
      return (*static_cast<const Make*>(object))();
    };
    return core->get(key, options, KernelMaker{call, &make});
  }
  /// The kernel of shape `i`.
  CachedModule get(std::uint64_t i, const ModuleOptions& options = {}) const;
};

inline ModuleKey key_of(std::uint64_t i) {
  ModuleKey key;
  key.kernel = {1, 2};
  key.values[0] = i;
  return key;
}

inline KernelText text_number(std::uint64_t i) {
  KernelText text;
  text.ptx = "kernel " + std::to_string(i);
  text.entry = "kernel";
  text.stages.add("build", 1.0);
  return text;
}

inline CachedModule FakeCache::get(std::uint64_t i, const ModuleOptions& options) const {
  return get(
      key_of(i), [i] { return text_number(i); }, options);
}

/// What the device was given for a share.
inline std::string content(const CachedModule& module) {
  const auto* loaded = dynamic_cast<const FakeDevice::Loaded*>(CacheCore::payload(module));
  return loaded == nullptr ? "-" : loaded->content;
}

inline CacheCoreOptions on_disk(const std::string& folder) {
  CacheCoreOptions options;
  options.disk.folder = folder;
  return options;
}

}  // namespace ptxgen::test
