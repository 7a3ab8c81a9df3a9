// tests/runtime/nvrtc_test.cpp - CUDA C++ to PTX
#include "ptxgen/runtime/assemble/nvrtc.hpp"

#include <catch2/catch.hpp>
#include <optional>

#include "ptxgen/support/error.hpp"
#include "runtime/samples.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

std::optional<Nvrtc> nvrtc_here() {
  try {
    return Nvrtc(Settings::from_environment());
  } catch (const Error& error) {
    if (error.code != "no-nvrtc") throw;
    skip("NVRTC not found");
    return std::nullopt;
  }
}

const std::vector<std::string> kOptions = {"--gpu-architecture=compute_89"};

}  // namespace

TEST_CASE("a CUDA kernel becomes PTX", "[nvrtc]") {
  const std::optional<Nvrtc> nvrtc = nvrtc_here();
  if (!nvrtc) return;
  CHECK_FALSE(nvrtc->version().empty());
  const NvrtcResult result = nvrtc->compile(
      "extern \"C\" __global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }", kOptions);
  CHECK(result.ptx.find(".target sm_89") != std::string::npos);
  CHECK(result.ptx.find(".visible .entry twice(") != std::string::npos);
  CHECK(result.ptx.find('\0') == std::string::npos);
}

TEST_CASE("a wrong CUDA program: its line, words and log", "[nvrtc]") {
  const std::optional<Nvrtc> nvrtc = nvrtc_here();
  if (!nvrtc) return;
  try {
    (void)nvrtc->compile("__global__ void k(int* x)\n{\n  x[0] = nothing;\n}\n", kOptions, "k.cu");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Build);
    CHECK(error.code == "nvrtc-rejected");
    CHECK(error.file == "k.cu");
    CHECK(error.line == 3);
    CHECK(error.message ==
          "NVRTC " + nvrtc->version() + " rejects line 3: identifier \"nothing\" is undefined");
    CHECK(error.excerpt.find("> 3 |   x[0] = nothing;") != std::string::npos);
    CHECK(error.log.find("k.cu(3): error: identifier") != std::string::npos);
  }
  try {
    const std::vector<std::string> wrong = {"--no-such-option"};
    (void)nvrtc->compile("", wrong);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code == "nvrtc-failed");
    CHECK(error.driver_status != 0);
  }
}

TEST_CASE("without NVRTC the message says what to do", "[nvrtc]") {
  Settings settings = bare_machine();
  settings.nvrtc_path = "/nowhere/libnvrtc.so";
  try {
    const Nvrtc nvrtc(settings);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code == "no-nvrtc");
    CHECK(error.message ==
          "the CUDA C++ compiler library NVRTC was not found; install the CUDA toolkit's libnvrtc "
          "or set PTXGEN_NVRTC_PATH or PTXGEN_CUDA_PATH to its path");
    CHECK(error.log == "/nowhere/libnvrtc.so (PTXGEN_NVRTC_PATH): no such file");
  }
}
