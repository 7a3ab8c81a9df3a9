// tests/launcher/compile_cuda_test.cpp - CUDA C++ through NVRTC, gates, cache and launch
#include <catch2/catch.hpp>

#include "launcher/rig.hpp"
#include "ptxgen/runtime/assemble/nvrtc.hpp"
#include "ptxgen/runtime/module/compile.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

constexpr std::string_view kSource = R"(
extern "C" __global__ void saxpy(float* y, const float* x, float a, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
)";

// Empty where NVRTC is there.
std::string why_not() {
  try {
    (void)Nvrtc(Settings::from_environment());
    return {};
  } catch (const Error& error) {
    return error.message;
  }
}

}  // namespace

TEST_CASE("a CUDA C++ kernel is compiled, checked, loaded once and launched") {
  if (const std::string reason = why_not(); !reason.empty()) return skip(reason);
  Rig rig;
  CudaOptions options;
  options.target = rig.device.target().name;
  const CudaProgram program = compile_cuda(kSource, options);
  CHECK(program.ptx.find(".entry saxpy") != std::string::npos);
  const Function saxpy = rig.launcher.load(program.module);
  (void)rig.launcher.load(program.ptx, "saxpy");  // the same text once parsed and printed
  CHECK(rig.launcher.cache().statistics().compiles == 1);

  const Buffer<f32> y(rig.context, std::vector<float>{1, 2, 3});
  const Buffer<f32> x(rig.context, std::vector<float>{10, 20, 30});
  using Signature = Kernel<Ptr<f32>, Ptr<f32>, f32, u32>;
  const auto block = Signature::pack(y.address(), x.address(), 0.5f, 3u);
  saxpy.launch(rig.stream, {.grid = {1, 1, 1}, .block = {32, 1, 1}}, {block.data(), block.size()});
  rig.stream.synchronize();
  CHECK(read(y) == std::vector<float>{6, 12, 18});
}

TEST_CASE("a missing header is named, with the folders that were searched") {
  if (const std::string reason = why_not(); !reason.empty()) return skip(reason);
  CudaOptions options;
  options.nvrtc = {"-I/nowhere/include"};
  const Error error = error_of([&] { (void)compile_cuda("#include \"not_there.h\"\n", options); });
  CHECK(error.stage == Stage::Build);
  CHECK(error.code == "missing-header");
  CHECK(
      error.message.starts_with("source.cu includes not_there.h, which is in none of the "
                                "folders searched (/nowhere/include"));
  CHECK(error.log.find("not_there.h") != std::string::npos);
}

TEST_CASE("what NVRTC rejects comes with line and log") {
  if (const std::string reason = why_not(); !reason.empty()) return skip(reason);
  CudaOptions options;
  options.name = "mine.cu";
  const Error error =
      error_of([&] { (void)compile_cuda("__global__ void k() {\n  nonsense;\n}\n", options); });
  CHECK(error.code == "nvrtc-rejected");
  CHECK(error.file == "mine.cu");
  CHECK(error.line == 2);
  CHECK(error.log.find("nonsense") != std::string::npos);
}

TEST_CASE("without NVRTC the places that were tried are listed") {
  CudaOptions options;
  options.settings = Settings{};
  options.settings.nvrtc_path = "/nowhere/libnvrtc.so";
  const Error error = error_of([&] { (void)compile_cuda(kSource, options); });
  CHECK(error.code == "no-nvrtc");
  CHECK(error.log.find("/nowhere/libnvrtc.so") != std::string::npos);
  options.target = "sm_1";
  CHECK(error_of([&] { (void)compile_cuda(kSource, options); }).code == "unknown-target");
}
