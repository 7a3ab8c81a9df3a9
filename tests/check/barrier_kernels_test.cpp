// tests/check/barrier_kernels_test.cpp - real kernels, and those of other corpora, at the gate
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "emulator/defect_corpus.hpp"
#include "ptxgen/check/gates.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx.hpp"
#include "support/findings.hpp"
#include "support/served_target.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool any_error(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.severity == Severity::Error; });
}

/// Runs a stored kernel `kernel(a, b, c, m, n, k)` on zeros; its findings at barriers.
std::string run_kernel(const std::string& ptx, std::uint32_t threads,
                       std::array<std::int32_t, 3> sizes, std::uint64_t seed) {
  emulator::Device device(emulator::default_gpu("sm_80"));
  emulator::Program program = emulator::Program::load(device, ptx);
  std::array<std::uint64_t, 3> buffers{};
  constexpr std::uint64_t kBytes = 1 << 15;
  for (std::uint64_t& buffer : buffers) {
    buffer = device.allocate(kBytes);
    device.fill(buffer, std::byte{0}, kBytes);
  }
  std::vector<std::byte> parameters(36);
  std::memcpy(parameters.data(), buffers.data(), 24);
  std::memcpy(parameters.data() + 24, sizes.data(), 12);
  emulator::Launch launch;
  launch.kernel = "kernel";
  launch.grid = {2, 2, 1};
  launch.block = {threads, 1, 1};
  launch.parameters = parameters;
  emulator::Options options;
  options.seed = seed;
  options.threads = 1;
  std::string text;
  for (const emulator::RunFinding& finding : emulator::run(program, launch, options).findings) {
    // Blocks of the second row write what those of the first do.
    if (finding.rule == emulator::Rule::RaceSameValue) continue;
    text += emulator::to_text(finding) + "\n";
  }
  return text;
}

constexpr std::array<const char*, 4> kKernels = {"gemm_tensor_core", "gemm_wmma_fp16",
                                                 "flash_attention", "flash_attention_tensor_core"};

}  // namespace

TEST_CASE("GEMM and attention with barriers in their loops pass, and fail with an early exit") {
  const std::filesystem::path folder = std::filesystem::path(BARRIER_CORPUS) / "kernels";
  for (const std::string name : kKernels) {
    INFO(name);
    const std::uint32_t threads = name.starts_with("flash") ? 64 : 128;
    const std::string right = content(folder / (name + ".ptx"));
    const std::string wrong = content(folder / (name + ".early_exit.ptx"));
    REQUIRE(right.size() > 100);
    REQUIRE(wrong.size() > 100);
    for (const std::array<std::uint32_t, 3> block :
         {std::array<std::uint32_t, 3>{0, 0, 0}, {threads, 1, 1}}) {
      CHECK(findings_of(gates::barrier_safety(ptx::parse(right), {.block = block})) == "");
      const std::vector<Finding> findings =
          gates::barrier_safety(ptx::parse(wrong), {.block = block});
      INFO(findings_of(findings));
      REQUIRE_FALSE(findings.empty());
      CHECK(findings[0].rule == "exited-before-barrier");
      CHECK(findings[0].severity == Severity::Warning);
      CHECK(any_error(gates::barrier_safety(ptx::parse(wrong),
                                            {.block = block, .origin = gates::CodeOrigin::Built})));
      CHECK(findings[0].message.find("leave the kernel at line") != std::string::npos);
    }
    // M = 17 at a tile of 16, N = 33 at one of 32, one row, one column; queries of length 17.
    for (const std::array<std::int32_t, 3> sizes :
         {std::array<std::int32_t, 3>{17, 33, 32}, {1, 33, 16}, {17, 1, 48}, {17, 17, 17}}) {
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        CHECK(run_kernel(right, threads, sizes, seed) == "");
        if (seed == 0)
          CHECK(run_kernel(wrong, threads, sizes, seed).find("before this barrier") !=
                std::string::npos);
      }
    }
  }
}

TEST_CASE("barriers of every kernel of the library are safe") {
  std::size_t kernels = 0;
  for (const KernelDescription& entry : catalog()) {
    std::vector<std::uint64_t> values;
    for (const ParameterInfo& parameter : entry.parameters)
      values.push_back(parameter.default_value);
    const ptx::Module module = entry.build(values, test::served_target(entry, "sm_89"));
    for (const std::uint32_t threads : {0u, 256u, 32u}) {
      // A kernel whose warps have roles runs with its own threads.
      if (threads != 0 && !entry.serves(ptx::target("sm_89"))) continue;
      gates::GateOptions options;
      if (threads != 0) options.block = {threads, 1, 1};
      CHECK(findings_of(gates::barrier_safety(module, options)) == "");
    }
    ++kernels;
  }
  CHECK(kernels >= 5);
}

TEST_CASE("defects at barriers are reported, their look-alikes are not") {
  int clean = 0, errors = 0, left = 0, warnings = 0;
  for (const DefectCase& test : read_cases(DEFECTS_FOLDER, ".ptx")) {
    INFO(test.name);
    const ptx::Module module = ptx::parse(test.text, test.name);
    const std::vector<Finding> findings =
        gates::barrier_safety(module, {.block = {test.block.x, test.block.y, test.block.z}});
    INFO(findings_of(findings));
    const bool at_barriers = test.about == emulator::Rule::BarrierDivergence ||
                             test.about == emulator::Rule::ExitedBeforeBarrier ||
                             test.about == emulator::Rule::BarrierDeadlock;
    if (test.name == "clean_exited_arrive") {
      // One block only arrives at the cluster's barrier and leaves, which the gate cannot show
      // right.
      CHECK(findings.size() == 1);
      CHECK(findings.front().severity == Severity::Warning);
    } else if (test.clean) {
      CHECK(findings.empty());
      ++clean;
    } else if (!at_barriers) {
      // bar.warp.sync with a wrong mask is the only other one with something of a barrier.
      CHECK(any_error(findings) == (test.name.find("mask_warp_sync") != std::string::npos));
    } else if (test.text.find("mbarrier.") == std::string::npos) {
      CHECK_FALSE(findings.empty());
      const bool exits = std::ranges::all_of(
          findings, [](const Finding& finding) { return finding.rule == "exited-before-barrier"; });
      any_error(findings) ? ++errors : exits ? ++left : ++warnings;
    }
  }
  std::cout << "defect corpus: " << clean << " clean kernels without findings, " << errors
            << " defects at barriers are errors, " << left << " threads that leave before, "
            << warnings << " warnings\n";
  CHECK(clean > 150);
  CHECK(errors >= 10);
  CHECK(errors + left >= 25);
  CHECK(warnings <= 1);
}

TEST_CASE("compilers' kernels are no errors at the gate") {
  int files = 0, warnings = 0, barriers = 0;
  for (const char* folder : {"stored", "foreign"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(PTXGEN_CORPUS) / folder)) {
      if (entry.path().extension() != ".ptx") continue;
      const std::string text = content(entry.path());
      const ptx::Module module = ptx::parse(text, entry.path().filename().string());
      const std::vector<Finding> findings = gates::barrier_safety(module);
      INFO(findings_of(findings));
      CHECK_FALSE(any_error(findings));
      ++files;
      warnings += static_cast<int>(findings.size());
      for (std::size_t at = text.find("bar.sync"); at != std::string::npos;
           at = text.find("bar.sync", at + 1))
        ++barriers;
    }
  }
  std::cout << files << " files of compilers, " << barriers << " bar.sync: no errors, " << warnings
            << " warnings\n";
  CHECK(files > 20);
}
