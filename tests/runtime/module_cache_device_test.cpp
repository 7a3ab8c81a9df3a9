// tests/runtime/module_cache_device_test.cpp - the cache of a context on the emulated device
#include <catch2/catch.hpp>

#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/kernels/gemv/coalesced.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/runtime/cache/module_cache.hpp"
#include "ptxgen/support/error.hpp"
#include "ptxgen/support/log.hpp"
#include "support/temporary_directory.hpp"

namespace {

using namespace ptxgen;

Settings settings_with(const std::string& folder) {
  Settings settings;
  settings.cache_dir = folder;
  return settings;
}

/// A GEMV's text; `calls` counts how often it was asked for.
struct Maker {
  const ptx::Target* target = nullptr;
  std::uint32_t k = 64;
  mutable std::atomic<int> calls{0};

  KernelText operator()() const {
    ++calls;
    KernelText text;
    {
      const Span span({}, "build", "test", &text.stages);
      text.module = GemvCoalesced{k, k}.build(*target).module();
    }
    text.ptx = ptx::print(text.module);
    text.entry = GemvCoalesced::kName;
    return text;
  }
};

ModuleKey shaped(const ModuleCache& cache, std::uint64_t k, const ModuleOptions& options = {}) {
  ModuleKey key = cache.key(GemvCoalesced::kName, options);
  key.values = {k, k};
  return key;
}

/// The library's messages while it lives.
class Messages {
 public:
  Messages() {
    set_default_log(Log(LogLevel::Warn, {[](void* user, LogLevel, std::string_view text) {
                                           auto& all = *static_cast<Messages*>(user);
                                           const std::lock_guard lock(all.mutex_);
                                           all.texts_.emplace_back(text);
                                         },
                                         this, nullptr}));
  }
  ~Messages() { reset_default_log(); }
  std::vector<std::string> texts() {
    const std::lock_guard lock(mutex_);
    return texts_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

}  // namespace

TEST_CASE("On the emulated device: compiled, then from memory, then by another from the disk") {
  const TemporaryDirectory folder;
  const Settings settings = settings_with(folder.path());
  const Device device = Device::open("emulator", settings);
  const Context context(device);
  const Maker maker{&device.target()};
  {
    ModuleCache cache(context, settings);
    CHECK(cache.folder() == folder.path());
    CHECK_FALSE(cache.find(shaped(cache, 64)));
    const CachedModule result = cache.get(shaped(cache, 64), {}, maker);
    CHECK(result.record().layer == CacheLayer::Compiled);
    CHECK(result.record().generator == "driver");
    CHECK(result.record().stages.of("build") > 0);
    CHECK(result.record().stages.of("load") > 0);
    CHECK(result.function().name() == GemvCoalesced::kName);
    CHECK(result.function().resources().static_shared == 1024);
    const CachedModule again = cache.get(shaped(cache, 64), {}, maker);
    CHECK(&again.function() == &result.function());
    CHECK(maker.calls == 1);
    CHECK(cache.statistics().hits == 1);
    CHECK(cache.statistics().compiles == 1);
  }
  ModuleCache later(context, settings);
  const CachedModule found = later.get(shaped(later, 64), {}, maker);
  CHECK(found.record().layer == CacheLayer::Disk);
  CHECK(later.statistics().compiles == 0);
  CHECK(later.statistics().disk_hits == 1);
}

TEST_CASE("Keys of a context tell kernels, texts, options and devices apart, and nothing else") {
  Settings settings = settings_with({});
  settings.cache = "memory";
  const Device h200 = Device::open("emulator:h200", settings);
  const Device t4 = Device::open("emulator:t4", settings);
  const Context one(h200);
  const Context two(h200);
  const Context other(t4);
  const ModuleCache cache(one, settings);
  const ModuleKey key = cache.key("gemv");
  CHECK(key == ModuleCache(two, settings).key("gemv"));
  const ModuleKey elsewhere = ModuleCache(other, settings).key("gemv");
  CHECK(key.target != elsewhere.target);
  CHECK(key.device != elsewhere.device);
  CHECK_FALSE(key == cache.key("gemw"));
  CHECK_FALSE(cache.key("gemv") == cache.key_of_text("gemv"));
  CHECK_FALSE(cache.key_of_text("a") == cache.key_of_text("b"));
  ModuleOptions options;
  options.max_registers = 32;
  CHECK_FALSE(key == cache.key("gemv", options));
  options = {};
  options.optimization = 3;
  CHECK_FALSE(key == cache.key("gemv", options));
  options = {};
  options.line_info = true;
  CHECK_FALSE(key == cache.key("gemv", options));
}

TEST_CASE(
    "Which of two equal devices it is does not matter: memory keys agree, the disk is shared") {
  const TemporaryDirectory folder;
  const Settings settings = settings_with(folder.path());
  (void)Device::open("emulator:h200", settings);  // so that the driver has one
  // A driver that shows the same GPU twice.
  driver::Table twice = driver::emulated::table();
  twice.device_get_count = [](int* count) {
    *count = 2;
    return driver::CUDA_SUCCESS;
  };
  twice.device_get = [](driver::CUdevice* device, int) {
    return driver::emulated::table().device_get(device, 0);
  };
  const Device first = Device::open(twice, 0, DeviceKind::Emulator, settings);
  const Device second = Device::open(twice, 1, DeviceKind::Emulator, settings);
  REQUIRE(first.info().ordinal != second.info().ordinal);
  const Context one(first);
  const Context two(second);
  ModuleCache cache(one, settings);
  ModuleCache other(two, settings);
  CHECK(cache.key("gemv") == other.key("gemv"));
  const Maker maker{&first.target()};
  CHECK(cache.get(shaped(cache, 64), {}, maker).record().layer == CacheLayer::Compiled);
  CHECK(other.get(shaped(other, 64), {}, maker).record().layer == CacheLayer::Disk);
}

TEST_CASE("Nothing of the cache is unloaded while a stream is captured") {
  Settings settings = settings_with({});
  ModuleCacheOptions options;
  options.mode = CacheMode::MemoryOnly;
  options.max_modules = 1;
  const Device device = Device::open("emulator", settings);
  const Context context(device);
  ModuleCache cache(context, options, settings);
  const Stream stream(context);
  const Maker maker{&device.target()};
  CachedModule held = cache.get(shaped(cache, 1), {}, maker);
  stream.begin_capture(Stream::CaptureMode::Relaxed);  // the others let nothing be loaded
  (void)cache.get(shaped(cache, 2), {}, maker);
  (void)cache.get(shaped(cache, 3), {}, maker);
  CHECK(cache.statistics().evictions == 1);
  CHECK(cache.statistics().deferred_unloads == 1);
  cache.clear();
  held = CachedModule();
  CHECK(cache.statistics().deferred_unloads == 3);
  CHECK(stream.capturing());
  const Graph graph = stream.end_capture();
  (void)cache.get(shaped(cache, 4), {}, maker);
  (void)cache.get(shaped(cache, 5), {}, maker);
  CHECK(cache.statistics().evictions == 2);
  CHECK(cache.statistics().deferred_unloads == 3);
}

TEST_CASE("Cold loads pass by the cache and are compiled each time") {
  const TemporaryDirectory folder;
  const Settings settings = settings_with(folder.path());
  const Device device = Device::open("emulator", settings);
  const Context context(device);
  ModuleCache cache(context, settings);
  const Maker maker{&device.target()};
  ModuleOptions cold;
  cold.cold = true;
  for (int i = 0; i < 2; ++i) {
    CHECK(cache.get(shaped(cache, 64), cold, maker).record().layer == CacheLayer::Compiled);
  }
  CHECK(maker.calls == 2);
  CHECK(cache.statistics().compiles == 2);
  CHECK(cache.statistics().modules == 0);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("A damaged entry is told to the device's log, once") {
  const TemporaryDirectory folder;
  const Settings settings = settings_with(folder.path());
  Messages messages;
  const Device device = Device::open("emulator", settings);
  const Context context(device);
  const Maker maker{&device.target()};
  {
    ModuleCache cache(context, settings);
    (void)cache.get(shaped(cache, 64), {}, maker);
  }
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    std::filesystem::resize_file(file.path(), file.file_size() / 2);
  }
  for (int i = 0; i < 3; ++i) {
    ModuleCache cache(context, settings);
    const CachedModule module = cache.get(shaped(cache, 64), {}, maker);
    CHECK(module.record().layer == (i == 0 ? CacheLayer::Compiled : CacheLayer::Disk));
  }
  const std::vector<std::string> texts = messages.texts();
  REQUIRE(texts.size() == 1);
  CHECK(texts.front().find("is damaged") != std::string::npos);
}

TEST_CASE("What the driver refuses is an error for all who ask, with the JIT's words") {
  Settings settings = settings_with({});
  settings.cache = "memory";
  const TemporaryDirectory folder;
  settings.temp_dir = folder.path();
  const Device device = Device::open("emulator", settings);
  const Context context(device);
  ModuleCache cache(context, settings);
  const std::string ptx =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry f()\n{\nnonsense;\n}\n";
  const auto make = [&] {
    KernelText text;
    text.ptx = ptx;
    text.entry = "f";
    return text;
  };
  for (int i = 0; i < 2; ++i) {
    try {
      (void)cache.get(cache.key_of_text(ptx), {}, make);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.stage == Stage::Load);
      CHECK(error.line == 6);
    }
  }
  CHECK(cache.statistics().failures == 2);
}

TEST_CASE("Threads share a context's cache") {
  Settings settings = settings_with({});
  settings.cache = "memory";
  const Device device = Device::open("emulator", settings);
  const Context context(device);
  ModuleCache cache(context, settings);
  const Maker maker{&device.target()};
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 8; ++i) {
        const CachedModule module = cache.get(shaped(cache, (i + t) % 8), {}, maker);
        if (module.function().name() != GemvCoalesced::kName) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(maker.calls == 8);
  CHECK(cache.statistics().modules == 8);
}

TEST_CASE("A folder for each host, where that is asked for") {
  const TemporaryDirectory folder;
  const Settings settings = settings_with(folder.path());
  const Device device = Device::open("emulator", settings);
  const Context context(device);
  ModuleCacheOptions options = ModuleCacheOptions::from(settings);
  options.per_host = true;
  ModuleCache cache(context, options, settings);
  CHECK(cache.folder().starts_with(folder.path() + "/"));
  CHECK(cache.folder().size() > folder.path().size() + 1);
  const Maker maker{&device.target()};
  (void)cache.get(shaped(cache, 64), {}, maker);
  CHECK_FALSE(std::filesystem::is_empty(cache.folder()));
}

TEST_CASE("The modes have names, and a wrong one is told with those there are") {
  for (const CacheMode mode :
       {CacheMode::ReadWrite, CacheMode::ReadOnly, CacheMode::MemoryOnly, CacheMode::Off}) {
    CHECK(cache_mode(to_string(mode)) == mode);
  }
  CHECK(to_string(CacheLayer::LowerFolder) == "lower-folder");
  try {
    (void)cache_mode("never");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.message ==
          "\"never\" is not a cache mode; set PTXGEN_CACHE to on, read-only, memory or off");
  }
  Settings settings;
  settings.cache = "read-only";
  settings.cache_dir = "here";
  settings.cache_lower_dir = "there";
  const ModuleCacheOptions options = ModuleCacheOptions::from(settings);
  CHECK(options.mode == CacheMode::ReadOnly);
  CHECK(options.folder == "here");
  CHECK(options.lower_folder == "there");
}
