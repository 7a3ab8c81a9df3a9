// tests/runtime/assembler_driver_test.cpp - assembling through a driver's linker
#include <catch2/catch.hpp>

#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/samples.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

Settings fake_driver() {
  Settings settings = bare_machine();
  settings.libcuda_path = FAKE_LIBCUDA_GPU;
  return settings;
}

Error error_of(const Settings& settings, const std::string& ptx, const std::string& target) {
  try {
    (void)Assembler(settings).assemble(ptx, for_target(target));
  } catch (const Error& error) {
    return error;
  }
  FAIL("assembled without an error");
  return Error(Stage::Assemble, "", "");
}

}  // namespace

// The stand-in checks our side of the calls: options, logs, statuses. That the calls do what we
// think is only shown by the last case, on a machine with a GPU.
TEST_CASE("the driver is told target and level, and its log is read", "[assembler]") {
  AssembleOptions options = for_target("sm_90");
  options.optimization = 1;
  const Assembler assembler(fake_driver());
  CHECK(assembler.available());
  const Assembly assembly = assembler.assemble(two_kernels(), options);
  CHECK(assembly.tool == AssemblerTool::Driver);
  CHECK(assembly.tool_version == "13.2");
  CHECK(assembly.log.rfind("target 90, level 1\n", 0) == 0);
  REQUIRE(assembly.kernels.size() == 1);
  CHECK(assembly.kernels[0].name == "k");
  CHECK(assembly.registers == 17);
  CHECK(assembly.shared == 64);
  CHECK(assembly.cubin.size() == 64);
  CHECK(assembler.assemble(two_kernels(), for_target("sm_90a")).log.rfind("target 65626,", 0) == 0);
  CHECK(assembler.assemble(two_kernels(), for_target("sm_100f")).log.rfind("target 131172,", 0) ==
        0);
}

TEST_CASE("the driver's refusal names the line", "[assembler]") {
  const Error error = error_of(fake_driver(), "first\nreject me\nthird\n", "sm_90");
  CHECK(error.code == "rejected");
  CHECK(error.line == 2);
  CHECK(error.driver_status == 218);
  CHECK(error.message == "driver 13.2 rejects line 2 for sm_90: Unknown instruction");
  CHECK(error.excerpt == "  1 | first\n> 2 | reject me\n  3 | third");
}

TEST_CASE("a log longer than the buffer is asked for again", "[assembler]") {
  const Error error = error_of(fake_driver(), "say much\n", "sm_90");
  CHECK(error.message == "driver 13.2 rejects line 1 for sm_90: the last line");
  CHECK(error.log.size() > 500000);
}

TEST_CASE("a driver that cannot be used", "[assembler]") {
  Settings settings = bare_machine();
  settings.libcuda_path = FAKE_LIBCUDA_NOGPU;
  Error error = error_of(settings, two_kernels(), "sm_90");
  CHECK(error.code == "no-assembler");
  CHECK(error.driver_status == 100);
  CHECK(error.message ==
        "driver cannot assemble here: cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device "
        "is detected");
  settings = fake_driver();
  settings.device = "cuda:3";
  error = error_of(settings, two_kernels(), "sm_90");
  CHECK(error.code == "no-assembler");
  CHECK(error.message.find("cuDeviceGet: ") != std::string::npos);
  CHECK(error_of(fake_driver(), two_kernels(), "sm_999").code == "unknown-target");
}

TEST_CASE("the emulated driver makes no machine code", "[assembler]") {
  Settings settings = bare_machine();
  settings.libcuda_path = STANDIN_LIBCUDA;
  if (settings.libcuda_path.empty()) {
    return skip("the stand-in is not built (PTXGEN_BUILD_STANDIN)");
  }
  CHECK_FALSE(Assembler(settings).available());
  const Error error = error_of(settings, two_kernels(), "sm_90");
  CHECK(error.code == "no-assembler");
  CHECK(error.log.find("is the emulated driver, which does not generate machine code") !=
        std::string::npos);
}

TEST_CASE("a real driver assembles and refuses", "[assembler][gpu]") {
  const Assembler assembler(Settings::from_environment());
  const AssembleOptions options = for_target("sm_75", AssemblerTool::Driver);
  try {
    const Assembly assembly = assembler.assemble(two_kernels(), options);
    CHECK(assembly.registers > 0);
    CHECK(assembly.shared == 512);
  } catch (const Error& error) {
    if (error.code == "no-assembler" || error.code == "unknown-target") {
      return skip("no NVIDIA driver with a GPU for sm_75 code: " + error.message);
    }
    throw;
  }
  try {
    (void)assembler.assemble(bad_kernel(), options);
    FAIL("bad PTX was assembled");
  } catch (const Error& error) {
    CHECK(error.code == "rejected");
    CHECK(error.line == 10);
  }
}
