// tests/runtime/launch_limits_test.cpp - what launches may ask for, and refusals
#include <catch2/catch.hpp>

#include <array>

#include "ptxgen/runtime/module/module.hpp"
#include "runtime/object_support.hpp"
#include "support/scripted_driver.hpp"

namespace {

using namespace ptxgen;
using namespace ptxgen::test;

constexpr std::uint32_t kDefault = 48 * 1024;
constexpr std::uint32_t kMax = 227 * 1024;

/// A kernel `f` with a parameter of 8 bytes on the scripted driver.
struct LimitedDriver {
  explicit LimitedDriver(const std::string& body = "ret;") : text(kernel_text(body)) {}
  ScriptedDriver driver;
  std::string text;

  /// The refusal of one launch, or "no error".
  std::string launch(const LaunchGeometry& geometry, const LaunchOptions& options = {},
                     std::size_t bytes = 8) {
    const Context context(Device::open(driver.table, 0));
    const Stream stream(context);
    const Function function = Module::load(context, text).function("f");
    const std::array<std::byte, 64> block{};
    return refusal([&] { function.launch(stream, geometry, {block.data(), bytes}, options); });
  }
  std::string launch_shared(std::uint32_t dynamic) { return launch({{}, {}, dynamic}); }
};

LaunchOptions cluster_of(std::uint32_t x) {
  LaunchOptions options;
  options.cluster = {x, 1, 1};
  return options;
}

}  // namespace

TEST_CASE("geometry beyond the limits is refused with value and limit") {
  LimitedDriver f;
  CHECK(f.launch({{0, 1, 1}, {}, 0}) == "launch-limits: a grid of 0 x 1 x 1 is empty: x is 0");
  CHECK(f.launch({{1, 65536, 1}, {}, 0}) ==
        "launch-limits: a grid of 1 x 65536 x 1 is too large: y is 65536, the device allows 65535");
  CHECK(f.launch({{}, {1, 1, 65}, 0}) ==
        "launch-limits: a block of 1 x 1 x 65 is too large: z is 65, the device allows 64");
  CHECK(f.launch({{}, {64, 32, 1}, 0}) ==
        "launch-limits: a block of 64 x 32 x 1 has 2048 threads, the device allows 1024");
  CHECK(f.driver.launches.empty());
  f.driver.function_attributes[driver::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 256;
  f.driver.function_attributes[driver::CU_FUNC_ATTRIBUTE_NUM_REGS] = 128;
  CHECK(f.launch({{}, {512, 1, 1}, 0}) ==
        "launch-limits: a block of 512 x 1 x 1 has 512 threads, the kernel with its 128 registers "
        "a thread and its directives allows 256");
  CHECK(f.launch({{7, 5, 3}, {256, 1, 1}, 0}) == "no error");
  REQUIRE(f.driver.launches.size() == 1);
  CHECK(f.driver.launches[0].config.gridDimY == 5);
  CHECK(f.driver.launches[0].arguments.size() == 8);
  CHECK(!f.driver.launches[0].extended);
}

TEST_CASE("arguments of another size than the parameters") {
  LimitedDriver f;
  CHECK(f.launch({}, {}, 12) ==
        "arguments: the arguments have 12 bytes, the kernel's parameters 8");
}

TEST_CASE("shared memory: opting in where the total needs it") {
  LimitedDriver f;
  f.driver.attributes[driver::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK] = 0;
  CHECK(f.launch_shared(kDefault - 1) == "no error");
  CHECK(f.launch_shared(kDefault) == "no error");
  CHECK(f.driver.opted_in.empty());
  CHECK(f.launch_shared(kDefault + 1) == "no error");
  CHECK(f.driver.opted_in == std::vector<int>{kDefault + 1});
  f.driver.opted_in.clear();
  f.driver.function_attributes[driver::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = 1;
  CHECK(f.launch_shared(kDefault - 1) == "no error");
  CHECK(f.driver.opted_in.empty());
  CHECK(f.launch_shared(kDefault) == "no error");
  CHECK(f.driver.opted_in == std::vector<int>{kDefault});
  CHECK(f.launch_shared(kMax - 1) == "no error");
  CHECK(f.launch_shared(kMax) ==
        "launch-limits: a block needs 232449 bytes of shared memory: 1 static and 232448 dynamic; "
        "the device allows 232448 besides the 0 that are reserved");
}

TEST_CASE("shared memory: the driver's own part counts for opting in") {
  LimitedDriver f;
  CHECK(f.launch_shared(kDefault - 1024) == "no error");
  CHECK(f.driver.opted_in.empty());
  CHECK(f.launch_shared(kDefault - 1023) == "no error");
  CHECK(f.driver.opted_in == std::vector<int>{kDefault - 1023});
  CHECK(f.launch_shared(kMax) == "no error");
  CHECK(contains(f.launch_shared(kMax + 1),
                 "0 static and 232449 dynamic; the device allows 232448 besides the 1024"));
}

TEST_CASE("shared memory: what was granted is never taken back") {
  LimitedDriver f;
  const Context context(Device::open(f.driver.table, 0));
  const Stream stream(context);
  const Module module = Module::load(context, f.text);
  const Function function = module.function("f");
  const Function again = module.function("f");
  const std::array<std::byte, 8> block{};
  for (const std::uint32_t dynamic : {60'000u, 50'000u, 60'000u, 70'000u, 100u}) {
    function.launch(stream, {{}, {}, dynamic}, block);
    again.launch(stream, {{}, {}, dynamic}, block);
  }
  CHECK(f.driver.opted_in == std::vector<int>{60'000, 70'000});
  function.allow({{}, {}, 80'000});
  CHECK(f.driver.opted_in.back() == 80'000);
}

TEST_CASE("programmatic launches only of kernels that wait") {
  LaunchOptions options;
  options.programmatic = true;
  {
    LimitedDriver f;
    CHECK(f.launch({}, options) ==
          "pdl-without-wait: a programmatic dependent launch of a kernel without "
          "griddepcontrol.wait may read data that the previous kernel has not written yet; add the "
          "wait or launch it without programmatic");
    CHECK(f.driver.launches.empty());
  }
  {
    LimitedDriver f("griddepcontrol.launch_dependents;\nret;");
    CHECK(contains(f.launch({}, options), "pdl-without-wait"));
  }
  LimitedDriver f("griddepcontrol.wait;\nret;");
  CHECK(f.launch({}, options) == "no error");
  REQUIRE(f.driver.launches.size() == 1);
  REQUIRE(f.driver.launches[0].attributes.size() == 1);
  const driver::CUlaunchAttribute& attribute = f.driver.launches[0].attributes[0];
  CHECK(attribute.id == driver::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  CHECK(attribute.value.programmaticStreamSerializationAllowed == 1);
  CHECK(f.driver.launches[0].arguments.size() == 8);
  f.driver.table.launch_kernel_ex = nullptr;
  CHECK(f.launch({}, options) ==
        "driver-too-old: a programmatic dependent launch needs cuLaunchKernelEx, which came with "
        "CUDA 11.6; this driver is 13.0");
}

TEST_CASE("clusters") {
  LimitedDriver f;
  CHECK(f.launch({{6, 1, 1}, {}, 0}, cluster_of(2)) == "no error");
  REQUIRE(f.driver.launches.size() == 1);
  REQUIRE(f.driver.launches[0].attributes.size() == 1);
  CHECK(f.driver.launches[0].attributes[0].id == driver::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  CHECK(f.driver.launches[0].attributes[0].value.clusterDim.x == 2);
  // The geometry may say so as well.
  CHECK(f.launch({{6, 1, 1}, {}, 0, {2, 1, 1}}) == "no error");
  REQUIRE(f.driver.launches.size() == 2);
  CHECK(f.driver.launches[1].attributes[0].value.clusterDim.x == 2);
  CHECK(f.launch({{7, 1, 1}, {}, 0}, cluster_of(2)) ==
        "launch-limits: a grid of 7 x 1 x 1 cannot be divided into clusters of 2 x 1 x 1");
  CHECK(f.launch({{16, 1, 1}, {}, 0}, cluster_of(16)) ==
        "launch-limits: a cluster of 16 x 1 x 1 has 16 blocks; valid are 1 to 8");
  f.driver.attributes[driver::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH] = 0;
  CHECK(f.launch({{6, 1, 1}, {}, 0}, cluster_of(2)) ==
        "not-supported: Scripted GPU does not support clusters; they need sm_90");
}

TEST_CASE("cooperative launches fit the device at once") {
  LimitedDriver f;
  f.driver.attributes[driver::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 10;
  LaunchOptions options;
  options.cooperative = true;
  CHECK(f.launch({{20, 1, 1}, {}, 0}, options) == "no error");
  REQUIRE(f.driver.launches.size() == 1);
  CHECK(f.driver.launches[0].attributes[0].id == driver::CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  CHECK(f.launch({{21, 1, 1}, {}, 0}, options) ==
        "launch-limits: a cooperative launch of 21 blocks, the device holds 20 at once");
}
