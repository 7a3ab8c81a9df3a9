// tests/coverage/covered_kernel.hpp - launches of small kernels, with their coverage
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coverage/coverage.hpp"
#include "coverage/recorder.hpp"
#include "ptxgen/emulator/observer.hpp"

namespace ptxgen::test {

/// A kernel `k(.param .u64 p, .param .u32 n)` on a device of its own; p has 4096 zeros, watched as
/// a matrix of 32 x 32 words.
class CoveredKernel {
 public:
  explicit CoveredKernel(std::string_view body, std::string_view before = {})
      : device_(emulator::gpu_named("sm_80")),
        program_(emulator::Program::load(
            device_,
            ".version 8.0\n.target sm_80\n.address_size 64\n" + std::string(before) +
                ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n.reg .b64 %p;\n.reg .b32 "
                "%n;\nld.param.u64 %p, [p];\nld.param.u32 %n, [n];\n" +
                std::string(body) + "\n}\n",
            "k.ptx")),
        buffer_(device_.allocate(kBytes, "p")) {
    device_.fill(buffer_, std::byte{0}, kBytes);
  }

  /// A launch of one block of `threads`.
  coverage::KernelCoverage run(std::uint32_t n, std::uint32_t threads = 32,
                               std::string_view name = "case") {
    std::vector<std::byte> block(12);
    std::memcpy(block.data(), &buffer_, 8);
    std::memcpy(block.data() + 8, &n, 4);
    emulator::Launch launch;
    launch.kernel = "k";
    launch.block = {threads, 1, 1};
    launch.parameters = block;
    coverage::CellRecorder recorder({{"p", buffer_, kBytes, 4, 32, 32}});
    result_ = emulator::observe(program_, launch, recorder);
    uncounted_ = recorder.uncounted();
    coverage::KernelCoverage found =
        coverage::of_launch(program_.module(), "k", result_.counters, name);
    found.cases.front().cells = recorder.take();
    return found;
  }

  [[nodiscard]] const emulator::Result& result() const noexcept { return result_; }
  [[nodiscard]] const std::string& uncounted() const noexcept { return uncounted_; }

 private:
  static constexpr std::uint64_t kBytes = 4096;

  emulator::Device device_;
  emulator::Program program_;
  std::uint64_t buffer_;
  emulator::Result result_;
  std::string uncounted_;
};

inline std::vector<std::string> texts_of(const std::vector<coverage::Missed>& all) {
  std::vector<std::string> texts;
  for (const coverage::Missed& one : all) texts.push_back(one.text);
  return texts;
}

}  // namespace ptxgen::test
