// tests/runtime/disk_cache_fault_test.cpp - trouble with the file system
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/cache_files.hpp"
#include "support/harness.hpp"
#include "support/temporary_directory.hpp"

#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
#define PTXGEN_UBSAN_OF_CLANG
#endif
#endif

namespace {

using namespace ptxgen;
using ptxgen::test::bytes_of;
using ptxgen::test::in_child;
using ptxgen::test::in_folder;
using ptxgen::test::path_of;
using ptxgen::test::WatchedCache;

constexpr int kErrors[] = {EACCES, EPERM, EROFS,  EMFILE, ENFILE, ENOSPC, EDQUOT,
                           EIO,    EBUSY, ENOENT, ESTALE, EINTR,  ENOMEM, EEXIST};

/// A run of a program: what is cached is found or made and stored, and the result is right.
/// Returns the number of calls to the system.
int scenario(const WatchedCache& cache) {
  for (const char* key : {"there", "new", "there", "new"}) {
    const std::string image = cache.load(key);
    const std::string right = "image of " + std::string(key);
    if (image == "-") {
      cache.store(key, right);
    } else {
      REQUIRE(image == right);
    }
  }
  int calls = 0;
  for (const auto& [name, count] : cache.files->calls) calls += count;
  return calls;
}

void prepare(const std::string& folder) {
  std::filesystem::remove_all(folder);
  REQUIRE(WatchedCache(in_folder(folder)).store("there", "image of there"));
  std::ofstream(folder + "/" + std::string(32, 'a') + ".0123456789abcdef.tmp") << "left behind";
}

}  // namespace

TEST_CASE("Each file call may fail once, in each way: right images, nothing removed") {
  const TemporaryDirectory parent;
  const std::string folder = parent.file("cache");
  DiskCacheOptions options = in_folder(folder);
  options.stale_after_s = -1;  // so that clearing up takes part
  prepare(folder);
  const int calls = scenario(WatchedCache(options));
  REQUIRE(calls > 15);
  for (const int error : kErrors) {
    for (int failing = 0; failing < calls; ++failing) {
      INFO("error " << error << " at call " << failing);
      prepare(folder);
      const WatchedCache cache(options);
      int call = 0;
      cache.files->before = [&](std::string_view) { return call++ == failing ? error : 0; };
      scenario(cache);
      REQUIRE(call > failing);
      REQUIRE(std::filesystem::exists(path_of(folder, "there")));
      REQUIRE(cache.warnings->size() <= 1);
      REQUIRE(cache->statistics().bad_entries == 0);
      REQUIRE(WatchedCache(options).load("there") == "image of there");
    }
  }
}

TEST_CASE("Each file call may fail for ever: a kernel is always made, one warning") {
  const TemporaryDirectory parent;
  const std::string folder = parent.file("cache");
  for (const int error : kErrors) {
    for (const char* failing : {"open", "info", "read", "create", "write", "close", "replace",
                                "remove", "list", "touch", "make_folders"}) {
      INFO("error " << error << " of " << failing);
      prepare(folder);
      const WatchedCache cache(in_folder(folder));
      cache.files->before = [&](std::string_view call) { return call == failing ? error : 0; };
      scenario(cache);
      REQUIRE(std::filesystem::exists(path_of(folder, "there")));
      REQUIRE(cache.warnings->size() <= 1);
      REQUIRE(cache->statistics().bad_entries == 0);
    }
  }
}

TEST_CASE("A folder that cannot be written is told once and not tried for each kernel") {
  const TemporaryDirectory folder;
  const WatchedCache cache(in_folder(folder.path()));
  cache.files->before = [](std::string_view call) { return call == "create" ? EROFS : 0; };
  for (int i = 0; i < 5; ++i) CHECK_FALSE(cache.store("k" + std::to_string(i), "image"));
  CHECK(cache.files->calls["create"] == 1);
  CHECK_FALSE(cache->writes());
  CHECK(cache->reads());
  REQUIRE(cache.warnings->size() == 1);
  CHECK(cache.warnings->front() ==
        "the cache folder " + folder.path() +
            " cannot be written: Read-only file system; kernels are compiled again where needed; "
            "set PTXGEN_CACHE_DIR to another folder");
}

TEST_CASE("A full disk is told once, leaves no file, and is used again when there is space") {
  const TemporaryDirectory folder;
  const WatchedCache cache(in_folder(folder.path()));
  cache.files->max_at_once = 20;  // a part of the entry still fits
  int writes = 0;
  cache.files->before = [&](std::string_view call) {
    return call == "write" && ++writes % 3 == 0 ? ENOSPC : 0;
  };
  for (int i = 0; i < 5; ++i) CHECK_FALSE(cache.store("k" + std::to_string(i), "image"));
  CHECK(cache.warnings->size() == 1);
  CHECK(std::filesystem::is_empty(folder.path()));
  cache.files->before = nullptr;
  CHECK(cache.store("k", "image"));
  CHECK(cache.load("k") == "image");
}

TEST_CASE("A listener that throws does not stop a run") {
  const TemporaryDirectory folder;
  DiskCacheOptions options = in_folder(folder.path() + "/file/below");
  write_file(folder.file("file"), "not a folder");
  options.warn = [](std::string_view) { throw 1; };
  DiskCache cache(options);
  CHECK_FALSE(cache.load(bytes_of("k")));
  CHECK_FALSE(cache.store(bytes_of("k"), {}, bytes_of("image")));
}

TEST_CASE(
    "A folder that is a file, an entry that is a folder or a pipe: never found, one warning") {
  const TemporaryDirectory folder;
  write_file(folder.file("file"), "not a folder");
  const WatchedCache blocked(in_folder(folder.file("file")));
  CHECK(blocked.load("k") == "-");
  CHECK_FALSE(blocked.store("k", "image"));
  CHECK(blocked.warnings->size() == 1);

  const WatchedCache cache(in_folder(folder.path()));
  std::filesystem::create_directory(path_of(folder.path(), "folder"));
  REQUIRE(::mkfifo(path_of(folder.path(), "pipe").c_str(), 0600) == 0);
  CHECK(cache.load("folder") == "-");
  CHECK(cache.load("pipe") == "-");
  CHECK_FALSE(cache.store("folder", "image"));
  CHECK(std::filesystem::is_directory(path_of(folder.path(), "folder")));
  CHECK(cache->statistics().bad_entries == 0);
}

// The system's own refusals, in a process that may be restricted for good.
TEST_CASE("Real modes: a folder without permission to write or to read") {
  const TemporaryDirectory parent;
  REQUIRE(::chmod(parent.path().c_str(), 0755) == 0);
  const std::string folder = parent.file("cache");
  REQUIRE(WatchedCache(in_folder(folder)).store("there", "image of there"));
  const std::string entry = path_of(folder, "there");
  REQUIRE(::chmod(entry.c_str(), 0644) == 0);
  const auto as_stranger = [&](auto&& work) {
    return in_child([&] {
      // Root may write anywhere; an unprivileged user may not.
      if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return 100;
      return work();
    });
  };
  REQUIRE(::chmod(folder.c_str(), 0555) == 0);
  CHECK(as_stranger([&] {
          const WatchedCache cache(in_folder(folder));
          if (cache.load("there") != "image of there") return 1;
          if (cache.store("new", "image")) return 2;
          if (cache.store("newer", "image")) return 3;
          return cache.warnings->size() == 1 && !cache->writes() ? 0 : 4;
        }) == 0);
  REQUIRE(::chmod(folder.c_str(), 0000) == 0);
  CHECK(as_stranger([&] {
          const WatchedCache cache(in_folder(folder));
          if (cache.load("there") != "-") return 1;
          if (cache.store("there", "image")) return 2;
          return cache.warnings->size() == 1 ? 0 : 3;
        }) == 0);
  REQUIRE(::chmod(folder.c_str(), 0700) == 0);
  CHECK(WatchedCache(in_folder(folder)).load("there") == "image of there");
}

/// Files of unfinished entries that are left in a folder.
std::size_t leftovers_in(const std::string& folder) {
  std::size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    count += file.path().extension() == ".tmp" ? 1 : 0;
  }
  return count;
}

TEST_CASE("Real limits: a file that may not grow") {
  const TemporaryDirectory folder;
  REQUIRE(WatchedCache(in_folder(folder.path())).store("there", "image of there"));
  // What write(2) does at the limit is what it does on a full disk: a part, then an error.
  CHECK(in_child([&] {
          const WatchedCache cache(in_folder(folder.path()));
          std::signal(SIGXFSZ, SIG_IGN);
          const rlimit limit = {4096, 4096};
          if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
          if (cache.store("big", std::string(100000, 'x'))) return 2;
          if (!cache.store("small", "image")) return 3;
          if (cache.load("big") != "-" || cache.load("small") != "image") return 4;
          return cache.warnings->size() == 1 ? 0 : 5;
        }) == 0);
  CHECK(WatchedCache(in_folder(folder.path())).load("there") == "image of there");
  CHECK(leftovers_in(folder.path()) == 0);
}

TEST_CASE("Real limits: no handle left") {
#if defined(PTXGEN_UBSAN_OF_CLANG)
  ptxgen::test::skip(
      "UBSan of clang needs a pipe to look at an object, so some handles must be left");
#else
  const TemporaryDirectory folder;
  REQUIRE(WatchedCache(in_folder(folder.path())).store("there", "image of there"));
  CHECK(in_child([&] {
          const WatchedCache cache(in_folder(folder.path()));
          const rlimit limit = {64, 64};
          if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
          while (::open("/dev/null", O_RDONLY) >= 0) continue;
          if (errno != EMFILE || cache.load("there") != "-") return 2;
          if (cache.store("new", "image")) return 3;
          return cache.warnings->size() == 1 && cache->writes() ? 0 : 4;
        }) == 0);
  CHECK(WatchedCache(in_folder(folder.path())).load("there") == "image of there");
  CHECK(leftovers_in(folder.path()) == 0);
#endif
}
