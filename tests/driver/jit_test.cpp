// tests/driver/jit_test.cpp - JIT options in, logs and times out
#include <array>
#include <catch2/catch.hpp>
#include <cstring>

#include "driver/emulated/jit.hpp"

using namespace ptxgen;
using namespace ptxgen::driver;
using namespace ptxgen::driver::emulated;
using Catch::Contains;

namespace {

void* number(std::size_t value) { return reinterpret_cast<void*>(value); }
std::size_t number(void* value) { return reinterpret_cast<std::uintptr_t>(value); }

/// Options and their values, as a caller holds them.
struct Arrays {
  std::array<CUjit_option, 4> names{};
  std::array<void*, 4> values{};
  unsigned count = 0;
  void add(CUjit_option name, void* value) {
    names[count] = name;
    values[count++] = value;
  }
  CUresult read(JitOptions& options, std::string& why) {
    return options.read(count, names.data(), values.data(), why);
  }
};

}  // namespace

TEST_CASE("jit: logs are cut to the buffer, ended, and their length is given back") {
  for (const std::size_t size : {0u, 1u, 2u, 5u, 6u, 7u, 100u}) {
    std::array<char, 104> buffer;
    buffer.fill('#');
    Arrays arrays;
    // The size before the buffer: their order does not matter.
    arrays.add(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, number(size));
    arrays.add(CU_JIT_ERROR_LOG_BUFFER, buffer.data());
    JitOptions options;
    std::string why;
    REQUIRE(arrays.read(options, why) == CUDA_SUCCESS);
    if (size != 0) CHECK(buffer[0] == '\0');
    options.error("12345");
    options.info("not here");
    options.finish();
    const std::string full = "12345\n";
    const std::size_t written = size == 0 ? 0 : std::min(full.size(), size - 1);
    CHECK(number(arrays.values[0]) == written);
    CHECK(arrays.values[1] == buffer.data());
    if (size != 0) CHECK(std::string(buffer.data()) == full.substr(0, written));
    for (std::size_t i = size; i < buffer.size(); ++i) CHECK(buffer[i] == '#');
  }
}

TEST_CASE("jit: buffers without a size and sizes without a buffer are harmless") {
  char buffer[4] = "abc";
  Arrays arrays;
  arrays.add(CU_JIT_INFO_LOG_BUFFER, buffer);
  arrays.add(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, number(100));
  JitOptions options;
  std::string why;
  REQUIRE(arrays.read(options, why) == CUDA_SUCCESS);
  options.info("info");
  options.error("error");
  options.finish();
  CHECK(std::string(buffer) == "abc");
  CHECK(number(arrays.values[1]) == 0);
}

TEST_CASE("jit: values are numbers in place of pointers, the upper half is not looked at") {
  Arrays arrays;
  arrays.add(CU_JIT_MAX_REGISTERS, number(0xdead00000040u));
  arrays.add(CU_JIT_TARGET, number(90 + kJitTargetAccelerated));
  arrays.add(CU_JIT_LOG_VERBOSE, number(1));
  arrays.add(CU_JIT_WALL_TIME, nullptr);
  JitOptions options;
  std::string why;
  REQUIRE(arrays.read(options, why) == CUDA_SUCCESS);
  CHECK(options.max_registers == 64);
  CHECK(options.verbose);
  REQUIRE(options.target);
  CHECK(ptx::name(*options.target) == "sm_90a");
  options.finish();
  float milliseconds = -1;
  std::memcpy(&milliseconds, &arrays.values[3], sizeof milliseconds);
  CHECK(milliseconds >= 0);
  CHECK(milliseconds < 60000);
}

TEST_CASE("jit: what is out of range is named") {
  const auto refused = [](int option, std::size_t value, CUresult expected) {
    Arrays arrays;
    arrays.add(static_cast<CUjit_option>(option), number(value));
    JitOptions options;
    std::string why;
    CHECK(arrays.read(options, why) == expected);
    return why;
  };
  CHECK_THAT(refused(CU_JIT_OPTIMIZATION_LEVEL, 5, CUDA_ERROR_INVALID_VALUE), Contains("0 to 4"));
  CHECK_THAT(refused(CU_JIT_TARGET, 7, CUDA_ERROR_INVALID_VALUE),
             Contains("is 7, which is no target"));
  CHECK_THAT(refused(CU_JIT_TARGET, 0x30000 + 90, CUDA_ERROR_INVALID_VALUE), Contains("no target"));
  CHECK_THAT(refused(999, 0, CUDA_ERROR_INVALID_VALUE), Contains("no JIT option 999"));
  CHECK_THAT(refused(-1, 0, CUDA_ERROR_INVALID_VALUE), Contains("no JIT option -1"));
  CHECK_THAT(refused(17, 0, CUDA_ERROR_NOT_SUPPORTED), Contains("host addresses"));
  CHECK(refused(CU_JIT_OPTIMIZATION_LEVEL, 4, CUDA_SUCCESS).empty());
  CHECK(refused(CU_JIT_CACHE_MODE, 2, CUDA_SUCCESS).empty());
  CHECK(refused(21, 1, CUDA_SUCCESS).empty());  // CU_JIT_FTZ
  JitOptions options;
  std::string why;
  CHECK(options.read(1, nullptr, nullptr, why) == CUDA_ERROR_INVALID_VALUE);
  CHECK(options.read(0, nullptr, nullptr, why) == CUDA_SUCCESS);
}
