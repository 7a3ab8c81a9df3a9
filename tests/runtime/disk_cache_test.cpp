// tests/runtime/disk_cache_test.cpp - the disk layer: keys, layers, modes, budget
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/cache/cache_key.hpp"
#include "runtime/cache_files.hpp"
#include "support/hash.hpp"
#include "support/temporary_directory.hpp"

namespace {

using namespace ptxgen;
using ptxgen::test::bytes_of;
using ptxgen::test::in_folder;
using ptxgen::test::path_of;
using ptxgen::test::WatchedCache;

std::size_t files_in(const std::string& folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    count += entry.is_regular_file() ? 1 : 0;
  }
  return count;
}

/// Sets a file's time to `age_s` ago.
void make_older(const std::string& path, std::int64_t age_s) {
  timespec times[2] = {};
  times[0].tv_sec = times[1].tv_sec = static_cast<time_t>(FileSystem().now_s() - age_s);
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("The content hash is XXH3 with 128 bits, as its specification has it") {
  CHECK(to_hex(hash128(std::string_view())) == "99aa06d3014798d86001c324468d497f");
  CHECK(hash128("a") != hash128("b"));
  CHECK(hash64("ab", 1) == hash64("ac", 1));
  CHECK(hash64("ab", 2) != hash64("ac", 2));
}

TEST_CASE("What was stored is found, by this process and the next") {
  const TemporaryDirectory folder;
  const std::string place = folder.file("a/b/cache");
  const WatchedCache first(in_folder(place));
  CHECK(first.load("k") == "-");
  CHECK(first.store("k", "image"));
  CHECK(first.load("k") == "image");
  CHECK(first.load("K") == "-");
  const WatchedCache second(in_folder(place));
  CHECK(second.load("k") == "image");
  CHECK(second.store("k", "another"));  // in place of the first
  CHECK(first.load("k") == "another");
  CHECK(first.store("", ""));
  CHECK(second.load("") == "");
  CHECK(files_in(place) == 2);
  CHECK(first.warnings->empty());
  const DiskStatistics seen = first->statistics();
  CHECK(seen.hits == 2);
  CHECK(seen.misses == 2);
  CHECK(seen.stores == 2);
  CHECK(seen.failures == 0);
  struct stat status = {};
  REQUIRE(::stat(place.c_str(), &status) == 0);
  CHECK((status.st_mode & 077) == 0);  // no other user puts kernels there
}

TEST_CASE("Nothing is read back after a store, and no folder is looked through for a load") {
  const TemporaryDirectory folder;
  const WatchedCache cache(in_folder(folder.path()));
  CHECK(cache.store("k", "image"));
  CHECK(cache.files->calls.count("open") == 0);
  CHECK(cache.files->calls.count("read") == 0);
  const int lists = cache.files->calls["list"];
  CHECK(cache.load("k") == "image");
  CHECK(cache.files->calls["list"] == lists);
}

TEST_CASE("Reads and writes that come in pieces make whole entries") {
  const TemporaryDirectory folder;
  const WatchedCache cache(in_folder(folder.path()));
  cache.files->max_at_once = 7;
  const std::string image(1000, 'x');
  CHECK(cache.store("k", image));
  CHECK(cache.load("k") == image);
}

TEST_CASE("Flipping any one field of the disk key is a miss") {
  const TemporaryDirectory folder;
  const WatchedCache cache(in_folder(folder.path()));
  const DiskKey base;
  REQUIRE(cache->store(key_bytes(base), {}, bytes_of("base")));
  CHECK(cache->load(key_bytes(base)));
  int flipped = 0;
#define PTXGEN_FLIP(type, field, value, doc)    \
  {                                             \
    INFO(#field);                               \
    DiskKey other = base;                       \
    other.field = value;                        \
    CHECK_FALSE(cache->load(key_bytes(other))); \
    ++flipped;                                  \
  }
  PTXGEN_DISK_KEY_FIELDS(PTXGEN_FLIP)
#undef PTXGEN_FLIP
  CHECK(flipped == 8);
}

TEST_CASE("Fields of a key do not run into each other, and an unknown version is no empty one") {
  DiskKey one;
  one.ptx = "ab";
  one.target = "c";
  DiskKey two;
  two.ptx = "a";
  two.target = "bc";
  CHECK(key_bytes(one) != key_bytes(two));
  DiskKey image_is_ptx;
  DiskKey unknown;
  unknown.generator = "ptxas";
  CHECK(key_bytes(image_is_ptx) != key_bytes(unknown));
  CHECK(key_bytes(unknown).size() > key_bytes(image_is_ptx).size() + unknown.generator.size());
}

TEST_CASE("A whole entry of another key under the same name is not taken") {
  const TemporaryDirectory folder;
  const WatchedCache cache(in_folder(folder.path()));
  REQUIRE(cache.store("other", "image"));
  std::filesystem::rename(path_of(folder.path(), "other"), path_of(folder.path(), "k"));
  CHECK(cache.load("k") == "-");
  CHECK(cache.warnings->empty());
  CHECK(std::filesystem::exists(path_of(folder.path(), "k")));
  CHECK(cache.store("k", "mine"));
  CHECK(cache.load("k") == "mine");
}

TEST_CASE("Read-only, off and homeless caches change nothing on the disk") {
  const TemporaryDirectory folder;
  REQUIRE(WatchedCache(in_folder(folder.path())).store("k", "image"));
  make_older(path_of(folder.path(), "k"), 10 * 24 * 3600);
  const auto before = std::filesystem::last_write_time(path_of(folder.path(), "k"));

  DiskCacheOptions options = in_folder(folder.path());
  options.mode = DiskMode::ReadOnly;
  const WatchedCache reader(options);
  CHECK(reader.load("k") == "image");
  CHECK_FALSE(reader.store("l", "image"));
  CHECK(std::filesystem::last_write_time(path_of(folder.path(), "k")) == before);

  options.mode = DiskMode::Off;
  const WatchedCache off(options);
  CHECK_FALSE(off->reads());
  CHECK(off.load("k") == "-");
  CHECK_FALSE(off.store("l", "image"));
  CHECK(off.files->calls.empty());

  const WatchedCache homeless(in_folder(""));
  CHECK_FALSE(homeless->writes());
  CHECK(homeless.load("k") == "-");
  CHECK_FALSE(homeless.store("l", "image"));
  CHECK(homeless.files->calls.empty());
  CHECK(files_in(folder.path()) == 1);
  CHECK(reader.warnings->empty());
  CHECK(homeless.warnings->empty());
}

TEST_CASE("A lower folder is read after the first and never changed") {
  const TemporaryDirectory lower;
  const TemporaryDirectory upper;
  REQUIRE(WatchedCache(in_folder(lower.path())).store("k", "from below"));
  REQUIRE(WatchedCache(in_folder(lower.path())).store("bad", "from below"));
  std::filesystem::resize_file(path_of(lower.path(), "bad"), 30);
  make_older(path_of(lower.path(), "k"), 10 * 24 * 3600);
  const auto before = std::filesystem::last_write_time(path_of(lower.path(), "k"));

  DiskCacheOptions options = in_folder(upper.path());
  options.lower_folder = lower.path();
  const WatchedCache cache(options);
  CHECK(cache.load("k") == "from below");
  CHECK(cache->load(bytes_of("k")).layer == DiskLayer::LowerFolder);
  CHECK(cache.load("bad") == "-");
  CHECK(cache.load("bad") == "-");
  REQUIRE(cache.warnings->size() == 1);
  CHECK(cache.warnings->front().find("can be deleted") != std::string::npos);
  CHECK(std::filesystem::file_size(path_of(lower.path(), "bad")) == 30);
  CHECK(cache.store("k", "from above"));
  CHECK(cache.load("k") == "from above");
  CHECK(std::filesystem::last_write_time(path_of(lower.path(), "k")) == before);
  CHECK(files_in(lower.path()) == 2);

  options.folder.clear();
  CHECK(WatchedCache(options).load("k") == "from below");
  CHECK(cache->statistics().lower_hits == 2);
}

TEST_CASE("The folder stays within its budget; what was used last stays longest") {
  const TemporaryDirectory folder;
  DiskCacheOptions options = in_folder(folder.path());
  options.budget_bytes = 20000;
  const std::string image(1000, 'x');
  for (int i = 0; i < 10; ++i) {
    const std::string key = "old" + std::to_string(i);
    REQUIRE(WatchedCache(in_folder(folder.path())).store(key, image));
    make_older(path_of(folder.path(), key), (i + 2) * 24 * 3600);
  }
  std::ofstream(folder.file("notes.txt")) << std::string(100000, 'n');
  const WatchedCache cache(options);
  CHECK(cache.load("old9") == image);  // the oldest of all until this use
  for (int i = 0; i < 14; ++i) REQUIRE(cache.store("new" + std::to_string(i), image));

  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() == ".ptxgen") bytes += entry.file_size();
  }
  CHECK(bytes <= options.budget_bytes);
  CHECK(cache->statistics().evictions > 0);
  CHECK(cache.load("old9") == image);
  CHECK(cache.load("old8") == "-");
  CHECK(cache.load("new13") == image);
  CHECK(std::filesystem::file_size(folder.file("notes.txt")) == 100000);
  CHECK_FALSE(cache.store("huge", std::string(30000, 'h')));  // would push out all the rest
  CHECK(cache.load("new13") == image);
  CHECK(cache.warnings->empty());
}

TEST_CASE("Uses are written down once a day, not at each load") {
  const TemporaryDirectory folder;
  const WatchedCache cache(in_folder(folder.path()));
  REQUIRE(cache.store("k", "image"));
  for (int i = 0; i < 5; ++i) CHECK(cache.load("k") == "image");
  CHECK(cache.files->calls["touch"] == 0);
  make_older(path_of(folder.path(), "k"), 2 * 24 * 3600);
  for (int i = 0; i < 5; ++i) CHECK(cache.load("k") == "image");
  CHECK(cache.files->calls["touch"] == 1);
}

TEST_CASE("What killed writers left is cleared up after a while, and nothing else") {
  const TemporaryDirectory folder;
  const std::string stem(32, 'a');
  const std::string stale = folder.file(stem + ".0123456789abcdef.tmp");
  const std::string fresh = folder.file(stem + ".0123456789abcdee.tmp");
  const std::string foreign = folder.file("work.tmp");
  for (const std::string& path : {stale, fresh, foreign}) std::ofstream(path) << "half an entry";
  std::filesystem::create_directory(folder.file(stem + ".0123456789abcded.tmp"));
  make_older(stale, 2 * 3600);
  make_older(foreign, 2 * 3600);
  const WatchedCache cache(in_folder(folder.path()));
  REQUIRE(cache.store("k", "image"));
  CHECK_FALSE(std::filesystem::exists(stale));
  CHECK(std::filesystem::exists(fresh));
  CHECK(std::filesystem::exists(foreign));
  CHECK(std::filesystem::exists(folder.file(stem + ".0123456789abcded.tmp")));
  CHECK(cache->statistics().stale_files == 1);
}

TEST_CASE("A clock that goes backwards or jumps ahead costs nothing but order") {
  const TemporaryDirectory folder;
  const std::int64_t year_s = 365 * 24 * 3600;
  const std::string temporary = folder.file(std::string(32, 'a') + ".0123456789abcdef.tmp");
  std::ofstream(temporary) << "a writer at work";
  const WatchedCache cache(in_folder(folder.path()));
  REQUIRE(cache.store("k", "image"));
  cache.files->now_offset_s = -year_s;  // every file is in the future now
  CHECK(cache.load("k") == "image");
  CHECK(cache.store("l", "image"));
  WatchedCache later(in_folder(folder.path()));
  later.files->now_offset_s = -year_s;
  CHECK(later.store("m", "image"));  // its first look finds all files in the future
  CHECK(std::filesystem::exists(temporary));

  make_older(path_of(folder.path(), "k"), -year_s);  // written before the clock was put right
  cache.files->now_offset_s = 0;
  CHECK(cache.load("k") == "image");
  const auto time = std::filesystem::last_write_time(path_of(folder.path(), "k"));
  CHECK(time < std::filesystem::file_time_type::clock::now() + std::chrono::hours(48));
  cache.files->now_offset_s = year_s;
  CHECK(cache.load("k") == "image");
  CHECK(cache.load("l") == "image");
  CHECK(cache.warnings->empty());
  CHECK(cache->statistics().failures == 0);
}

TEST_CASE("An image that the driver refuses is dropped like a damaged entry") {
  const TemporaryDirectory folder;
  const WatchedCache cache(in_folder(folder.path()));
  REQUIRE(cache.store("k", "image"));
  cache->drop(bytes_of("k"), "the driver rejects its image");
  CHECK(cache.load("k") == "-");
  REQUIRE(cache.warnings->size() == 1);
  CHECK(cache.warnings->front() ==
        "the cached kernel " + path_of(folder.path(), "k") +
            " is damaged: the driver rejects its image; it is removed and compiled again");
  cache->drop(bytes_of("k"), "the driver rejects its image");
  CHECK(cache.warnings->size() == 1);
}
