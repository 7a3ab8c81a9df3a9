// tests/driver/libcuda_test.cpp - finding a libcuda and filling the table
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "ptxgen/driver/table.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::driver;

namespace {

Settings only(const char* libcuda_path) {
  Settings settings;
  settings.search_usual_places = false;
  settings.libcuda_path = libcuda_path;
  return settings;
}

/// How many functions of a table are null.
int missing_in(const Table& table) {
  int missing = 0;
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  missing += table.field == nullptr;
#include "ptxgen/driver/functions.def"
  return missing;
}

}  // namespace

TEST_CASE("a driver that knows versions is asked for the version of each symbol", "[libcuda]") {
  const Libcuda found = find_libcuda(only(FAKE_DRIVER_NEW));
  CHECK(found.problem == "");
  CHECK(found.where == FAKE_DRIVER_NEW);
  CHECK_FALSE(found.emulated);
  REQUIRE(found.table != nullptr);
  const Table& table = *found.table;
  CHECK(missing_in(table) == 0);
  CHECK(table.mem_alloc(nullptr, 0) == CUDA_ERROR_NOT_READY);
  CHECK(table.ctx_create_v4(nullptr, nullptr, 0, 0) == CUDA_ERROR_NOT_READY);
  CHECK(table.stream_get_capture_info_v3(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                         nullptr) == CUDA_ERROR_NOT_READY);
  // What it does not know by version is looked up by symbol.
  CHECK(table.stream_query(nullptr) == CUDA_ERROR_UNKNOWN);
  // Each entry is its own function: none was mixed up with another version of the same name.
  std::set<void*> entries;
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  entries.insert(reinterpret_cast<void*>(table.field));
#include "ptxgen/driver/functions.def"
  CHECK(entries.size() == functions().size());
}

TEST_CASE("an old driver lacks what is optional", "[libcuda]") {
  const Libcuda found = find_libcuda(only(FAKE_DRIVER_OLD));
  CHECK(found.problem == "");
  REQUIRE(found.table != nullptr);
  CHECK(found.table->get_proc_address == nullptr);
  CHECK(found.table->launch_kernel_ex == nullptr);
  CHECK(found.table->ctx_synchronize() == CUDA_ERROR_UNKNOWN);
  int optional = 0;
  for (const FunctionInfo& function : functions()) optional += function.need == Need::Optional;
  CHECK(optional > 0);
  CHECK(missing_in(*found.table) == optional);
}

TEST_CASE("a library that is no driver is named with what it lacks", "[libcuda]") {
  const Libcuda found = find_libcuda(only(FAKE_DRIVER_LESS));
  CHECK(found.table == nullptr);
  CHECK(found.where == FAKE_DRIVER_LESS);
  CHECK(found.problem == "is not a usable driver: it has no function cuGraphLaunch");
}

TEST_CASE("a stub for linking is no driver", "[libcuda]") {
  const Libcuda found = find_libcuda(only(FAKE_DRIVER_STUB));
  CHECK(found.table == nullptr);
  CHECK(found.problem ==
        "is the toolkit's stub for linking, not a driver; install the NVIDIA driver, or remove the "
        "stubs folder from LD_LIBRARY_PATH");
}

TEST_CASE("the toolkit's own stub is recognised", "[libcuda]") {
  const char* const stub = "/usr/local/cuda/lib64/stubs/libcuda.so";
  if (!std::filesystem::exists(stub)) {
    return test::skip("no toolkit with a stub of libcuda at " + std::string(stub));
  }
  const Libcuda found = find_libcuda(only(stub));
  CHECK(found.table == nullptr);
  CHECK(found.problem.rfind("is the toolkit's stub for linking", 0) == 0);
}

TEST_CASE("our stand-in is a driver, and recognised", "[libcuda]") {
  const std::string standin = STANDIN_LIBCUDA;
  if (standin.empty()) return test::skip("the stand-in is not built (PTXGEN_BUILD_STANDIN)");
  const Libcuda found = find_libcuda(only(standin.c_str()));
  CHECK(found.problem == "");
  CHECK(found.emulated);
  REQUIRE(found.table != nullptr);
  CHECK(missing_in(*found.table) == 0);
  int count = 0;
  CHECK(found.table->init(0) == CUDA_SUCCESS);
  CHECK(found.table->device_get_count(&count) == CUDA_SUCCESS);
  CHECK(count == 1);
}

TEST_CASE("where no libcuda is, the places are named", "[libcuda]") {
  const Libcuda found = find_libcuda(only("/nowhere/libcuda.so.1"));
  CHECK(found.table == nullptr);
  CHECK(found.where == "");
  CHECK(found.problem == "/nowhere/libcuda.so.1 (PTXGEN_LIBCUDA_PATH): no such file");
}

TEST_CASE("one file has one table, for any caller", "[libcuda]") {
  std::vector<const Table*> tables(8);
  {
    std::vector<std::jthread> threads;
    for (const Table*& table : tables) {
      threads.emplace_back([&table] {
        table = find_libcuda(only(FAKE_DRIVER_NEW)).table;
        (void)find_libcuda(only(FAKE_DRIVER_LESS));
      });
    }
  }
  REQUIRE(tables.front() != nullptr);
  CHECK(std::set<const Table*>(tables.begin(), tables.end()).size() == 1);
  CHECK(find_libcuda(only(FAKE_DRIVER_OLD)).table != tables.front());
}

TEST_CASE("codes are told in words", "[libcuda]") {
  CHECK(result_text(CUDA_ERROR_INVALID_VALUE) == "CUDA_ERROR_INVALID_VALUE (1): invalid argument");
  CHECK(result_text(static_cast<CUresult>(12345)) == "CUresult 12345");
  CHECK(version_text(12080) == "12.8");
  Table table;
  CHECK(result_text(table, CUDA_ERROR_NO_DEVICE) == result_text(CUDA_ERROR_NO_DEVICE));
  table.get_error_name = [](CUresult result, const char** text) {
    *text = result == static_cast<CUresult>(12345) ? "CUDA_ERROR_NEW" : nullptr;
    return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  CHECK(result_text(table, static_cast<CUresult>(12345)) == "CUDA_ERROR_NEW (12345)");
  CHECK(result_text(table, CUDA_ERROR_NO_DEVICE) == result_text(CUDA_ERROR_NO_DEVICE));
  table.get_error_string = [](CUresult, const char** text) {
    *text = "words";
    return CUDA_SUCCESS;
  };
  CHECK(result_text(table, static_cast<CUresult>(12345)) == "CUDA_ERROR_NEW (12345): words");
}
