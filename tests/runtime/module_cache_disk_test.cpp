// tests/runtime/module_cache_disk_test.cpp - the cache's layers together
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "ptxgen/driver/api.hpp"
#include "runtime/cache_fakes.hpp"
#include "support/temporary_directory.hpp"

namespace {

using namespace ptxgen;
using ptxgen::test::content;
using ptxgen::test::driver_error;
using ptxgen::test::FakeCache;
using ptxgen::test::in_child;
using ptxgen::test::key_of;
using ptxgen::test::on_disk;
using ptxgen::test::text_number;

std::vector<std::string> stage_names(const LoadRecord& record) {
  std::vector<std::string> names;
  for (const StageTime& stage : record.stages.stages) names.emplace_back(stage.stage);
  return names;
}

std::size_t entries_in(const std::string& folder) {
  std::size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    count += file.path().extension() == ".ptxgen" ? 1 : 0;
  }
  return count;
}

std::string only_entry(const std::string& folder) {
  REQUIRE(entries_in(folder) == 1);
  return std::filesystem::directory_iterator(folder)->path().string();
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("A second process loads what the first assembled, and each says what served it") {
  const TemporaryDirectory folder;
  const FakeCache first(on_disk(folder.path()));
  const CachedModule result = first.get(1);
  CHECK(result.record().layer == CacheLayer::Compiled);
  CHECK(result.record().generator == "fake-assembler 1.0");
  CHECK(stage_names(result.record()) == Names{"build", "disk", "assemble", "load"});
  CHECK(result.record().image_bytes == std::string("code of kernel 1").size());
  CHECK(result.record().ptx_hash.size() == 32);

  const FakeCache second(on_disk(folder.path()));
  const CachedModule found = second.get(1);
  CHECK(content(found) == "code of kernel 1");
  CHECK(found.record().layer == CacheLayer::Disk);
  CHECK(stage_names(found.record()) == Names{"build", "disk", "load"});
  CHECK(found.record().ptx_hash == result.record().ptx_hash);
  CHECK(second.device->assembles == 0);
  const CacheStatistics seen = second->statistics();
  CHECK(seen.disk_hits == 1);
  CHECK(seen.compiles == 0);
  CHECK(seen.misses == 1);
  CHECK(first->statistics().disk_stores == 1);

  CacheCoreOptions below;
  below.disk.lower_folder = folder.path();
  const FakeCache third(below);
  CHECK(third.get(1).record().layer == CacheLayer::LowerFolder);
  CHECK(third->statistics().lower_hits == 1);
}

TEST_CASE("Kernels of one name and different bodies do not meet") {
  const TemporaryDirectory folder;
  const FakeCache first(on_disk(folder.path()));
  (void)first.get(key_of(1), [] { return text_number(1); });
  const FakeCache second(on_disk(folder.path()));
  CHECK(content(second.get(key_of(1), [] { return text_number(2); })) == "code of kernel 2");
}

TEST_CASE("What changes an image is a miss on the disk; what does not is a hit") {
  const TemporaryDirectory folder;
  (void)FakeCache(on_disk(folder.path())).get(1);
  const auto compiles = [&](const ModuleOptions& options, auto&& change) {
    CacheCoreOptions reading = on_disk(folder.path());
    reading.mode = CacheMode::ReadOnly;
    const FakeCache cache(reading);
    change(*cache.device);
    (void)cache.get(1, options);
    return cache->statistics().compiles;
  };
  const auto nothing = [](auto&) {};
  CHECK(compiles({}, nothing) == 0);
  ModuleOptions options;
  options.max_registers = 32;
  CHECK(compiles(options, nothing) == 1);
  options = {};
  options.line_info = true;
  CHECK(compiles(options, nothing) == 1);
  options = {};
  options.optimization = 1;
  CHECK(compiles(options, nothing) == 1);
  // An assembler has no level 4: two spellings of one setting.
  options.optimization = 3;
  CHECK(compiles(options, nothing) == 0);
  CHECK(compiles({}, [](auto& device) { device.target_name = "sm_90a"; }) == 1);
  CHECK(compiles({}, [](auto& device) { device.tool.name = "other"; }) == 1);
  CHECK(compiles({}, [](auto& device) { device.tool.version = "1.1"; }) == 1);

  const std::string before = std::filesystem::current_path();
  const TemporaryDirectory elsewhere;
  std::filesystem::current_path(elsewhere.path());
  ::setenv("PTXGEN_TEST_UNRELATED", "changed", 1);
  CHECK(compiles({}, nothing) == 0);
  ::unsetenv("PTXGEN_TEST_UNRELATED");
  std::filesystem::current_path(before);
}

TEST_CASE("A damaged entry is compiled anew with one warning, and is whole afterwards") {
  const TemporaryDirectory folder;
  (void)FakeCache(on_disk(folder.path())).get(1);
  const std::string path = only_entry(folder.path());
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 3);
  const FakeCache cache(on_disk(folder.path()));
  CHECK(content(cache.get(1)) == "code of kernel 1");
  CHECK(cache.warnings->size() == 1);
  CHECK(cache->statistics().disk_bad_entries == 1);
  CHECK(FakeCache(on_disk(folder.path())).get(1).record().layer == CacheLayer::Disk);
}

TEST_CASE("An image that the driver refuses is dropped and made anew, with one warning") {
  const TemporaryDirectory folder;
  (void)FakeCache(on_disk(folder.path())).get(1);
  const FakeCache cache(on_disk(folder.path()));
  int loads = 0;
  cache.device->on_load_image = [&](std::span<const std::byte>) {
    if (++loads == 1) throw driver_error(driver::CUDA_ERROR_INVALID_IMAGE, "bad image");
  };
  CHECK(content(cache.get(1)) == "code of kernel 1");
  CHECK(cache.device->assembles == 1);
  REQUIRE(cache.warnings->size() == 1);
  CHECK(cache.warnings->front().find("the driver rejects its image") != std::string::npos);
  CHECK(entries_in(folder.path()) == 1);
}

TEST_CASE("A device without memory is no fault of the image: told, nothing dropped") {
  const TemporaryDirectory folder;
  (void)FakeCache(on_disk(folder.path())).get(1);
  const FakeCache cache(on_disk(folder.path()));
  cache.device->on_load_image = [](std::span<const std::byte>) {
    throw driver_error(driver::CUDA_ERROR_OUT_OF_MEMORY, "no memory");
  };
  CHECK_THROWS_AS(cache.get(1), Error);
  CHECK(cache.warnings->empty());
  CHECK(entries_in(folder.path()) == 1);
  cache.device->on_load_image = nullptr;
  CHECK(cache.get(1).record().layer == CacheLayer::Disk);
}

TEST_CASE("A device without an assembler gets the text, from the disk as well") {
  const TemporaryDirectory folder;
  const auto open = [&] {
    FakeCache cache(on_disk(folder.path()));
    cache.device->tool = {};
    return cache;
  };
  const FakeCache first = open();
  CHECK(content(first.get(1)) == "kernel 1");
  CHECK(first.get(1).record().generator == "driver");
  const FakeCache second = open();
  CHECK(content(second.get(1)) == "kernel 1");
  CHECK(second.get(1).record().layer == CacheLayer::Disk);
  CHECK(second->statistics().compiles == 0);
  CHECK(second.device->text_loads == 1);
}

TEST_CASE("A device that takes no machine code is given the text, and asked only once") {
  const TemporaryDirectory folder;
  const auto open = [&] {
    FakeCache cache(on_disk(folder.path()));
    cache.device->on_load_image = [](std::span<const std::byte>) {
      throw driver_error(driver::CUDA_ERROR_NO_BINARY_FOR_GPU, "no machine code here");
    };
    return cache;
  };
  const FakeCache first = open();
  CHECK(content(first.get(1)) == "kernel 1");
  CHECK(content(first.get(2)) == "kernel 2");
  CHECK(first.device->assembles == 1);
  CHECK(first->statistics().compiles == 2);
  CHECK(first.warnings->empty());
  const FakeCache second = open();
  (void)second.get(1);
  CHECK(second.get(2).record().layer == CacheLayer::Disk);
}

TEST_CASE("One image of the wrong kind does not end assembling") {
  const FakeCache cache;
  (void)cache.get(1);
  cache.device->on_load_image = [](std::span<const std::byte> image) {
    if (ptxgen::test::text_of(image) == "code of kernel 2") {
      throw driver_error(driver::CUDA_ERROR_NO_BINARY_FOR_GPU, "for another part");
    }
  };
  CHECK(content(cache.get(2)) == "kernel 2");
  CHECK(content(cache.get(3)) == "code of kernel 3");
}

TEST_CASE("A kernel that is not in its module says nothing about machine code") {
  const FakeCache cache;
  cache.device->on_load_image = [](std::span<const std::byte> image) {
    if (ptxgen::test::text_of(image) == "code of kernel 1") {
      throw driver_error(driver::CUDA_ERROR_NOT_FOUND, "no kernel of that name");
    }
  };
  cache.device->on_load_text = [](const KernelText&) {
    throw driver_error(driver::CUDA_ERROR_NOT_FOUND, "no kernel of that name");
  };
  CHECK_THROWS_AS(cache.get(1), Error);
  CHECK(content(cache.get(2)) == "code of kernel 2");
}

TEST_CASE("What the assembler cannot do the driver is asked for; two refusals are told together") {
  const FakeCache cache;
  cache.device->on_assemble = [](const KernelText&) {
    throw Error(Stage::Assemble, "unknown-target", "too old for sm_121");
  };
  CHECK(content(cache.get(1)) == "kernel 1");
  CHECK(cache.get(1).record().generator == "driver");
  cache.device->on_load_text = [](const KernelText&) {
    throw driver_error(driver::CUDA_ERROR_INVALID_PTX, "line 3 is wrong");
  };
  try {
    (void)cache.get(2);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.message == "line 3 is wrong");
    REQUIRE(error.causes.size() == 1);
    CHECK(error.causes.front().code == "unknown-target");
  }
}

TEST_CASE("An empty log of the driver is a hint at its own cache") {
  const FakeCache cache;
  cache.device->tool = {};
  cache.device->empty_log = true;
  CHECK(cache.get(1).record().layer == CacheLayer::DriverHint);
  CHECK(cache->statistics().driver_hints == 1);
  CHECK(cache->statistics().compiles == 1);
}

TEST_CASE("Cold loads compile each time and leave no files") {
  const TemporaryDirectory folder;
  const FakeCache cache(on_disk(folder.path()));
  (void)cache.get(1);
  ModuleOptions cold;
  cold.cold = true;
  for (int i = 0; i < 2; ++i) {
    const CachedModule module = cache.get(1, cold);
    CHECK(module.record().layer == CacheLayer::Compiled);
    CHECK(stage_names(module.record()) == Names{"build", "assemble", "load"});
  }
  (void)cache.get(2, cold);
  CHECK_FALSE(cache->find(key_of(2)));
  CHECK(cache->statistics().compiles == 4);
  CHECK(cache.device->live == 1);
  CHECK(entries_in(folder.path()) == 1);
}

TEST_CASE("The modes: memory only, read-only and off") {
  const TemporaryDirectory folder;
  (void)FakeCache(on_disk(folder.path())).get(1);
  CacheCoreOptions options = on_disk(folder.path());

  options.mode = CacheMode::MemoryOnly;
  const FakeCache memory(options);
  CHECK(memory.get(1).record().layer == CacheLayer::Compiled);
  CHECK(memory->find(key_of(1)));

  options.mode = CacheMode::ReadOnly;
  const FakeCache reader(options);
  CHECK(reader.get(1).record().layer == CacheLayer::Disk);
  CHECK(reader.get(2).record().layer == CacheLayer::Compiled);

  options.mode = CacheMode::Off;
  const FakeCache off(options);
  for (int i = 0; i < 3; ++i) CHECK(off.get(1).record().layer == CacheLayer::Compiled);
  CHECK_FALSE(off->find(key_of(1)));
  CHECK(off.device->assembles == 3);
  CHECK(off.device->live == 0);
  CHECK(entries_in(folder.path()) == 1);
}

TEST_CASE("No folder, or one that cannot be used: everything runs from memory") {
  const FakeCache homeless;
  CHECK(content(homeless.get(1)) == "code of kernel 1");
  const TemporaryDirectory folder;
  write_file(folder.file("file"), "in the way");
  const FakeCache blocked(on_disk(folder.file("file")));
  for (std::uint64_t i = 0; i < 5; ++i) {
    CHECK(content(blocked.get(i)) == "code of kernel " + std::to_string(i));
  }
  CHECK(blocked.warnings->size() == 1);
  CHECK(blocked->statistics().disk_failures > 0);
}

TEST_CASE("Two processes that start at once share a folder and are both served right") {
  const TemporaryDirectory folder;
  const auto work = [&] {
    const FakeCache cache(on_disk(folder.path()));
    for (std::uint64_t i = 0; i < 50; ++i) {
      if (content(cache.get(i)) != "code of kernel " + std::to_string(i)) return 1;
    }
    if (!cache.warnings->empty()) return 2;
    const CacheStatistics seen = cache->statistics();
    return seen.disk_hits + seen.compiles == 50 && seen.disk_bad_entries == 0 ? 0 : 3;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < 2; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(work());
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  CHECK(entries_in(folder.path()) == 50);
  CHECK(in_child([&] {
          const FakeCache cache(on_disk(folder.path()));
          for (std::uint64_t i = 0; i < 50; ++i) (void)cache.get(i);
          return static_cast<int>(cache->statistics().compiles);
        }) == 0);
}
