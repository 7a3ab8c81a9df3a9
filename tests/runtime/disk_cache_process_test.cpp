// tests/runtime/disk_cache_process_test.cpp - several processes, and killed ones
#include <catch2/catch.hpp>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cache_files.hpp"
#include "support/harness.hpp"
#include "support/temporary_directory.hpp"

namespace {

using namespace ptxgen;
using ptxgen::test::in_child;
using ptxgen::test::in_folder;
using ptxgen::test::WatchedCache;

std::string key_of(int i) { return "key " + std::to_string(i); }

/// All of one letter, which says who wrote it; sizes differ, so that a mixture is seen.
std::string image_of(int i, char letter) {
  return std::string(static_cast<std::size_t>(3000 + 517 * i + 1000 * (letter % 7)), letter);
}

bool is_complete(int i, const std::string& image) {
  return image == "-" || (!image.empty() && image == image_of(i, image[0]));
}

/// Forks `work`, which does not return.
template <class Work>
pid_t start(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  return child;
}

}  // namespace

TEST_CASE("A writer killed before any call, or within a write, leaves whole entries only") {
  const TemporaryDirectory parent;
  const std::string folder = parent.file("cache");
  for (const bool replacing : {false, true}) {
    for (int fatal = 0;; ++fatal) {
      INFO("call " << fatal << ", replacing " << replacing);
      std::filesystem::remove_all(folder);
      if (replacing) {
        REQUIRE(WatchedCache(in_folder(folder)).store(key_of(0), image_of(0, 'a')));
      }
      const int end = in_child([&] {
        const WatchedCache cache(in_folder(folder));
        cache.files->max_at_once = 1000;
        int call = 0;
        cache.files->before = [&](std::string_view) {
          if (call++ == fatal) ::raise(SIGKILL);
          return 0;
        };
        return cache.store(key_of(0), image_of(0, 'b')) ? 0 : 1;
      });
      const WatchedCache reader(in_folder(folder));
      const std::string image = reader.load(key_of(0));
      REQUIRE(is_complete(0, image));
      REQUIRE((image == "-") <= !replacing);
      REQUIRE(reader.warnings->empty());
      REQUIRE(reader->statistics().bad_entries == 0);
      // The next writer is not in the way of what was left, and clears it up in time.
      DiskCacheOptions options = in_folder(folder);
      options.stale_after_s = -1;
      REQUIRE(WatchedCache(options).store(key_of(0), image_of(0, 'c')));
      std::size_t files = 0;
      for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder)) ++files;
      REQUIRE(files == 1);
      if (end == 0) {
        REQUIRE(fatal >= 8);
        break;
      }
      REQUIRE(end == 1000 + SIGKILL);
    }
  }
}

TEST_CASE("Writers killed at random: readers beside them never see a bad entry") {
  const TemporaryDirectory folder;
  std::minstd_rand random(static_cast<unsigned>(ptxgen::test::seed()));
  const WatchedCache reader(in_folder(folder.path()));
  const int rounds = ptxgen::test::count(60, 600);
  int found = 0;
  for (int round = 0; round < rounds; ++round) {
    const char letter = static_cast<char>('a' + round % 26);
    const pid_t writer = start([&] {
      const WatchedCache cache(in_folder(folder.path()));
      for (int i = 0;; i = (i + 1) % 4) cache.store(key_of(i), image_of(i, letter));
    });
    // Mostly in the middle of its work, sometimes while it starts.
    bool at_work = random() % 4 == 0;
    int more = static_cast<int>(random() % 200);
    for (int load = 0; more > 0; ++load) {
      const std::string image = reader.load(key_of(load % 4));
      REQUIRE(is_complete(load % 4, image));
      found += image != "-" ? 1 : 0;
      at_work = at_work || image[0] == letter;
      if (at_work) --more;
    }
    ::kill(writer, SIGKILL);
    int status = 0;
    ::waitpid(writer, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    for (int i = 0; i < 4; ++i) REQUIRE(is_complete(i, reader.load(key_of(i))));
  }
  CHECK(found > 0);
  CHECK(reader->statistics().bad_entries == 0);
  CHECK(reader.warnings->empty());
}

TEST_CASE("Two processes that write, read and evict in one folder see whole entries") {
  const TemporaryDirectory folder;
  const int rounds = ptxgen::test::count(300, 5000);
  const auto work = [&](char letter, unsigned seed) {
    return [&folder, rounds, letter, seed] {
      DiskCacheOptions options = in_folder(folder.path());
      options.budget_bytes = 60000;  // about half of what they write
      const WatchedCache cache(options);
      std::minstd_rand random(seed);
      for (int round = 0; round < rounds; ++round) {
        const int i = static_cast<int>(random() % 16);
        if (random() % 2 == 0) {
          if (!cache.store(key_of(i), image_of(i, letter))) ::_exit(1);
        } else if (!is_complete(i, cache.load(key_of(i)))) {
          ::_exit(2);
        }
      }
      const DiskStatistics seen = cache->statistics();
      ::_exit(!cache.warnings->empty() || seen.bad_entries != 0 ? 3 : seen.hits == 0 ? 4 : 0);
    };
  };
  const auto seed = static_cast<unsigned>(ptxgen::test::seed());
  const pid_t children[] = {start(work('a', seed + 1)), start(work('b', seed + 2))};
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
}

TEST_CASE("Threads share one object: loads, stores, drops and evictions at once") {
  const TemporaryDirectory folder;
  DiskCacheOptions options = in_folder(folder.path());
  options.budget_bytes = 60000;
  options.sync = false;
  DiskCache cache(options);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      for (int round = 0; round < 200; ++round) {
        const int i = static_cast<int>(random() % 16);
        const auto key = ptxgen::test::bytes_of(key_of(i));
        const char letter = static_cast<char>('a' + t);
        if (random() % 2 == 0) {
          (void)cache.store(key, {}, ptxgen::test::bytes_of(image_of(i, letter)));
        } else if (random() % 16 == 0) {
          cache.drop(key, "the test says so");
        } else if (const DiskEntry entry = cache.load(key)) {
          wrong += is_complete(i, ptxgen::test::text_of(entry.image)) ? 0 : 1;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(cache.statistics().hits > 0);
  CHECK(cache.statistics().evictions > 0);
}
