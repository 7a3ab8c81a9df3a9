// tests/runtime/module_cache_test.cpp - the memory layer: flights, eviction, captures
#include <catch2/catch.hpp>

#include <stdexcept>
#include <thread>

#include "runtime/cache_fakes.hpp"
#include "runtime/count_allocations.hpp"
#include "support/harness.hpp"

namespace {

using namespace ptxgen;
using ptxgen::test::content;
using ptxgen::test::FakeCache;
using ptxgen::test::Gate;
using ptxgen::test::key_of;
using ptxgen::test::text_number;

}  // namespace

TEST_CASE("64 threads that ask for 32 shapes compile 32 modules") {
  constexpr int kThreads = 64;
  constexpr int kShapes = 32;
  const FakeCache cache;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  std::vector<const LoadedPayload*> first(kShapes, nullptr);
  std::mutex mutex;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 3; ++round) {
        for (int s = 0; s < kShapes; ++s) {
          const int shape = (s * 7 + t) % kShapes;
          const CachedModule module = cache.get(static_cast<std::uint64_t>(shape));
          if (content(module) != "code of kernel " + std::to_string(shape)) ++wrong;
          const std::lock_guard lock(mutex);
          const LoadedPayload*& known = first[static_cast<std::size_t>(shape)];
          if (known == nullptr) known = CacheCore::payload(module);
          if (known != CacheCore::payload(module)) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(cache.device->assembles == kShapes);
  CHECK(cache.device->live == kShapes);
  const CacheStatistics seen = cache->statistics();
  CHECK(seen.compiles == kShapes);
  CHECK(seen.misses == kShapes);
  CHECK(seen.modules == kShapes);
  CHECK(seen.hits + seen.waits + seen.misses == kThreads * kShapes * 3);
}

TEST_CASE("A failed flight wakes all who wait with the same error, and is tried again later") {
  constexpr int kThreads = 16;
  const FakeCache cache;
  std::atomic<bool> fail{true};
  const bool other_kind = GENERATE(false, true);
  const auto make = [&]() -> KernelText {
    while (cache->statistics().waits < kThreads - 1) std::this_thread::yield();
    if (!fail) return text_number(1);
    if (other_kind) throw std::runtime_error("no such plan");
    Error error(Stage::Build, "bad-shape", "the shape is odd");
    error.kernel = "gemv";
    throw error.refresh();
  };
  std::mutex mutex;
  std::vector<std::string> caught;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      std::string what = "nothing";
      try {
        (void)cache.get(key_of(1), make);
      } catch (Error& error) {
        what = error.what();
        error.message = "changed by one of them";  // its own copy
        error.refresh();
      }
      const std::lock_guard lock(mutex);
      caught.push_back(what);
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(caught.size() == kThreads);
  for (const std::string& what : caught) CHECK(what == caught.front());
  CHECK(caught.front().find(other_kind ? "no such plan" : "the shape is odd") != std::string::npos);
  CHECK(cache->statistics().failures == 1);
  CHECK(cache->statistics().modules == 0);
  CHECK_FALSE(cache->find(key_of(1)));
  fail = false;
  CHECK(content(cache.get(key_of(1), make)) == "code of kernel 1");
}

TEST_CASE("Hits and other misses go on while a slow kernel compiles") {
  const FakeCache cache;
  Gate started;
  Gate may_end;
  cache.device->on_assemble = [&](const KernelText& text) {
    if (text.ptx != "kernel 1000") return;
    started.open();
    may_end.wait();
  };
  (void)cache.get(1);
  std::string got;
  std::thread slow([&] { got = content(cache.get(1000)); });
  started.wait();
  // None of these returns if any lock is held meanwhile.
  for (int i = 0; i < 100; ++i) REQUIRE(cache->find(key_of(1)));
  REQUIRE(content(cache.get(1)) == "code of kernel 1");
  REQUIRE(content(cache.get(2)) == "code of kernel 2");
  REQUIRE_FALSE(cache->find(key_of(1000)));
  REQUIRE(cache->statistics().hits == 101);
  may_end.open();
  slow.join();
  CHECK(got == "code of kernel 1000");
  CHECK(cache->find(key_of(1000)));
}

TEST_CASE("A hit allocates nothing") {
  if (!ptxgen::test::kCountsAllocations)
    return ptxgen::test::skip("clang's TSan has its own operator new");
  const FakeCache cache;
  for (std::uint64_t i = 0; i < 100; ++i) (void)cache.get(i);
  const std::uint64_t before = ptxgen::test::allocations();
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const CachedModule module = cache->find(key_of(i % 100));
    const CachedModule copy = module;  // NOLINT: the copy is what is looked at
    found += copy ? 1 : 0;
  }
  const std::uint64_t after = ptxgen::test::allocations();
  CHECK(after == before);
  CHECK(found == 1000);
}

TEST_CASE("10 000 kernels through a cache of 64 leave 64 loaded") {
  CacheCoreOptions options;
  options.max_modules = 64;
  const FakeCache cache(options);
  const std::uint64_t distinct = 10000;
  for (std::uint64_t i = 0; i < distinct; ++i) {
    REQUIRE(content(cache.get(i)) == "code of kernel " + std::to_string(i));
    // One that is used all the time stays.
    REQUIRE(cache.get(0).record().layer == CacheLayer::Compiled);
  }
  CHECK(cache.device->assembles == static_cast<int>(distinct));
  CHECK(cache.device->live == 64);
  CHECK(cache.device->max_live <= 65);  // the new one is loaded before the old one goes
  const CacheStatistics seen = cache->statistics();
  CHECK(seen.modules == 64);
  CHECK(seen.evictions == distinct - 64);
  CHECK(seen.hits == distinct);
  // What was used last is what is there.
  for (std::uint64_t i = distinct - 63; i < distinct; ++i) CHECK(cache->find(key_of(i)));
  CHECK_FALSE(cache->find(key_of(distinct - 64)));
}

TEST_CASE("A module in use stays loaded and findable whatever comes after it") {
  CacheCoreOptions options;
  options.max_modules = 4;
  const FakeCache cache(options);
  CachedModule held = cache.get(0);
  for (std::uint64_t i = 1; i < 20; ++i) (void)cache.get(i);
  CHECK(content(held) == "code of kernel 0");
  CHECK(CacheCore::payload(cache->find(key_of(0))) == CacheCore::payload(held));
  cache->clear();
  CHECK(cache.device->live == 1);
  CHECK(content(held) == "code of kernel 0");
  CHECK(content(cache.get(0)) == "code of kernel 0");  // a second one: the cache knows no first
  CHECK(cache.device->live == 2);
  held = CachedModule();
  CHECK(cache.device->live == 1);
}

TEST_CASE("All in use at once may be more than the bound; what is let go of is unloaded") {
  CacheCoreOptions options;
  options.max_modules = 4;
  const FakeCache cache(options);
  {
    std::vector<CachedModule> held;
    for (std::uint64_t i = 0; i < 10; ++i) held.push_back(cache.get(i));
    CHECK(cache.device->live == 10);
  }
  (void)cache.get(10);
  CHECK(cache.device->live == 4);
}

TEST_CASE("Nothing is unloaded while a capture runs") {
  CacheCoreOptions options;
  options.max_modules = 2;
  const FakeCache cache(options);
  CachedModule held = cache.get(0);
  cache.device->capturing = true;
  for (std::uint64_t i = 1; i < 6; ++i) (void)cache.get(i);
  cache->clear();
  held = CachedModule();
  CHECK(cache.device->live == 6);
  CHECK(cache->statistics().modules == 0);
  CHECK(cache->statistics().deferred_unloads == 6);
  cache.device->capturing = false;
  (void)cache.get(7);
  CHECK(cache.device->live == 1);
}

TEST_CASE("Shares outlive the cache") {
  std::shared_ptr<ptxgen::test::FakeDevice> device;
  CachedModule held;
  {
    const FakeCache cache;
    device = cache.device;
    held = cache.get(0);
    (void)cache.get(1);
  }
  CHECK(device->live == 1);
  CHECK(content(held) == "code of kernel 0");
  held = CachedModule();
  CHECK(device->live == 0);
}

TEST_CASE("Flipping any bit of any field of the memory key is a miss") {
  const FakeCache cache;
  ModuleKey base = key_of(5);
  base.plan = 3;
  (void)cache.get(base, [] { return text_number(5); });
  std::uint64_t words[sizeof(ModuleKey) / 8];
  int flipped = 0;
  for (std::size_t word = 0; word < std::size(words); ++word) {
    for (unsigned bit = 0; bit < 64; ++bit) {
      std::memcpy(words, &base, sizeof(base));
      words[word] ^= std::uint64_t{1} << bit;
      ModuleKey other;
      std::memcpy(&other, words, sizeof(other));
      INFO("word " << word << ", bit " << bit);
      REQUIRE_FALSE(other == base);
      REQUIRE_FALSE(cache->find(other));
      ++flipped;
    }
  }
  CHECK(flipped == 13 * 64);
  CHECK(cache->find(base));
}

TEST_CASE("Threads that get, hold, evict and clear at once agree about what lives") {
  CacheCoreOptions options;
  options.max_modules = 8;
  auto cache = std::make_unique<FakeCache>(options);
  const auto device = cache->device;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  const int rounds = ptxgen::test::count(500, 5000);
  for (unsigned t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::uint32_t random = t * 77 + 1;
      CachedModule held;
      for (int round = 0; round < rounds; ++round) {
        random = random * 1664525 + 1013904223;
        const std::uint64_t shape = (random >> 16) % 24;
        CachedModule module = cache->get(shape);
        if (content(module) != "code of kernel " + std::to_string(shape)) ++wrong;
        if (random % 3 == 0) held = module;
        if (round % 50 == 49 && t == 0) (*cache)->clear();
        if (round % 40 == 20 && t == 1) device->capturing = !device->capturing;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  device->capturing = false;
  (*cache)->clear();
  CHECK(device->live == 0);
  cache.reset();
  CHECK(device->live == 0);
}

TEST_CASE("prepare makes all ready in parallel, reports each, and counts what comes after it") {
  CacheCoreOptions options;
  options.threads = 4;
  const FakeCache cache(options);
  // All four must be compiling at once before one may end.
  std::atomic<int> inside{0};
  cache.device->on_assemble = [&](const KernelText&) {
    ++inside;
    while (inside < 4) std::this_thread::yield();
  };
  std::vector<std::uint64_t> numbers = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<ModuleCache::Request> requests;
  for (const std::uint64_t& i : numbers) {
    requests.push_back({key_of(i),
                        {[](const void* object) {
                           return text_number(*static_cast<const std::uint64_t*>(object));
                         },
                         &i}});
  }
  std::vector<std::size_t> reported;
  const PrepareProgress progress = {
      [](void* user, std::size_t done, std::size_t total) {
        static_cast<std::vector<std::size_t>*>(user)->push_back(total * 100 + done);
      },
      &reported};
  cache->prepare(requests, {}, progress);
  CHECK(cache.device->assembles == 8);
  CHECK(reported == std::vector<std::size_t>{801, 802, 803, 804, 805, 806, 807, 808});
  CHECK(cache->statistics().compiles_since_prepare == 0);
  for (const std::uint64_t i : numbers) (void)cache.get(i);
  CHECK(cache->statistics().compiles_since_prepare == 0);
  CHECK(cache->statistics().misses_since_prepare == 0);
  (void)cache.get(99);
  CHECK(cache->statistics().compiles_since_prepare == 1);
  CHECK(cache->statistics().misses_since_prepare == 1);
}

TEST_CASE("prepare tries all and then throws the first error in the order of the list") {
  const FakeCache cache;
  const std::vector<std::uint64_t> numbers = {0, 1, 2, 3, 4, 5};
  std::vector<ModuleCache::Request> requests;
  for (const std::uint64_t& i : numbers) {
    const auto make = [](const void* object) -> KernelText {
      const std::uint64_t number = *static_cast<const std::uint64_t*>(object);
      if (number % 3 == 2) throw Error(Stage::Build, "odd", "number " + std::to_string(number));
      return text_number(number);
    };
    requests.push_back({key_of(i), {make, &i}});
  }
  std::string message;
  std::size_t last = 0;
  try {
    cache->prepare(
        requests, {},
        {[](void* user, std::size_t done, std::size_t) { *static_cast<std::size_t*>(user) = done; },
         &last});
  } catch (const Error& error) {
    message = error.message;
  }
  CHECK(message == "number 2");
  CHECK(last == 6);
  CHECK(cache.device->assembles == 4);
  CHECK(cache->statistics().failures == 2);
}
