// tests/runtime/disk_cache_damage_test.cpp - truncated and altered entries
#include <catch2/catch.hpp>

#include <filesystem>
#include <string>

#include "runtime/cache_files.hpp"
#include "support/temporary_directory.hpp"

namespace {

using namespace ptxgen;
using ptxgen::test::bytes_of;
using ptxgen::test::in_folder;
using ptxgen::test::WatchedCache;

/// Puts `content` in the entry's place and loads: never found, the file gone, one warning; then a
/// new store heals it.
void check_damaged(const std::string& folder, const std::string& content) {
  const std::string path = folder + "/" + DiskCache::file_name(bytes_of("k"));
  write_file(path, content);
  const WatchedCache cache(in_folder(folder));
  REQUIRE(cache.load("k") == "-");
  REQUIRE_FALSE(std::filesystem::exists(path));
  REQUIRE(cache.load("k") == "-");
  REQUIRE(cache.store("k", "new"));
  REQUIRE(cache.load("k") == "new");
  REQUIRE(cache->statistics().bad_entries == 1);
  REQUIRE(cache.warnings->size() == 1);
  REQUIRE(cache.warnings->front().find(path) != std::string::npos);
  REQUIRE(cache.warnings->front().find("removed and compiled again") != std::string::npos);
}

std::string small_entry() {
  return ptxgen::test::text_of(
      encode_entry(bytes_of("k"), bytes_of("about k"), bytes_of("the image")));
}

}  // namespace

TEST_CASE("An entry cut at any byte is dropped with one warning") {
  const TemporaryDirectory folder;
  const std::string full = small_entry();
  REQUIRE(full.size() == 48 + 1 + 7 + 9 + 16);
  for (std::size_t size = 0; size < full.size(); ++size) {
    INFO("size " << size);
    check_damaged(folder.path(), full.substr(0, size));
  }
}

TEST_CASE("An entry with any bit flipped is dropped with one warning") {
  const TemporaryDirectory folder;
  const std::string full = small_entry();
  for (std::size_t bit = 0; bit < 8 * full.size(); ++bit) {
    INFO("bit " << bit);
    std::string damaged = full;
    damaged[bit / 8] =
        static_cast<char>(static_cast<unsigned char>(damaged[bit / 8]) ^ (1U << (bit % 8)));
    check_damaged(folder.path(), damaged);
  }
}

TEST_CASE("An entry with bytes appended, zeroed or put together from two is dropped") {
  const TemporaryDirectory folder;
  const std::string full = small_entry();
  check_damaged(folder.path(), full + "x");
  check_damaged(folder.path(), full + full);
  check_damaged(folder.path(), std::string(full.size(), '\0'));
  std::string other = ptxgen::test::text_of(
      encode_entry(bytes_of("k"), bytes_of("about k"), bytes_of("THE IMAGE")));
  check_damaged(folder.path(), full.substr(0, 50) + other.substr(50));
}

TEST_CASE("Sizes that overflow when added are refused, and nothing of that size is allocated") {
  const std::string full = small_entry();
  for (const std::size_t field : {16U, 24U, 32U}) {
    for (const unsigned high : {0x7fU, 0x80U, 0xffU}) {
      std::string file = full;
      file[field + 7] = static_cast<char>(high);
      const EntryContent content = decode_entry(bytes_of(file), bytes_of("k"));
      CHECK(content.state == EntryState::Bad);
      CHECK(content.why == "its size differs from the one in its header");
    }
  }
}

TEST_CASE("A damaged entry that cannot be removed is reported once and ignored") {
  const TemporaryDirectory folder;
  const std::string path = folder.file(DiskCache::file_name(bytes_of("k")));
  write_file(path, small_entry().substr(0, 60));
  DiskCacheOptions options = in_folder(folder.path());
  // Not allowed by us, or by the file system.
  options.mode = GENERATE(DiskMode::ReadOnly, DiskMode::ReadWrite);
  const WatchedCache cache(options);
  cache.files->before = [](std::string_view call) { return call == "remove" ? EBUSY : 0; };
  for (int i = 0; i < 3; ++i) CHECK(cache.load("k") == "-");
  REQUIRE(cache.warnings->size() == 1);
  CHECK(cache.warnings->front().find("ignored and compiled again") != std::string::npos);
  CHECK(cache.files->calls["open"] == 1);
  CHECK(std::filesystem::exists(path));
  if (options.mode == DiskMode::ReadWrite) {
    CHECK(cache.store("k", "new"));
    CHECK(cache.load("k") == "new");
  }
}
