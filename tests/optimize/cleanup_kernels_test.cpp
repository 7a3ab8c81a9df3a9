// tests/optimize/cleanup_kernels_test.cpp - random kernels before and after the cleanup passes
#include <catch2/catch.hpp>

#include "emulator/kernel_runner.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using ptxgen::test::RandomKernel;

TEST_CASE("cleanup leaves random kernels what they compute, and nothing to do a second time") {
  constexpr std::uint64_t kNumbers = 1'000'000;
  const int kernels = test::count(60, 2000);
  std::uint64_t fired = 0;
  for (int i = 0; i < kernels; ++i) {
    const RandomKernel kernel = test::random_kernel(
        test::seed() * kNumbers + 20000 + static_cast<std::uint64_t>(i), test::RaceKind::None);
    emulator::Options run;
    run.max_instructions = 1'000'000;
    const test::KernelOutcome expected = test::KernelRunner(kernel).run(run);
    for (const char* pass :
         {"fold_constants", "copy_propagation", "dead_code", "branch_simplify", "cleanup"}) {
      optimize::PassOptions options;
      options.passes = {pass};
      ptx::Module module = ptx::parse(kernel.ptx);
      const optimize::PipelineReport report = optimize::run_passes(module, options);
      for (const optimize::PassReport& entry : report.passes) fired += entry.fired();
      RandomKernel after = kernel;
      after.ptx = ptx::print(module);
      INFO(pass << " on\n" << kernel.ptx << "gave\n" << after.ptx);
      const test::KernelOutcome got = test::KernelRunner(after).run(run);
      CHECK(got.status == expected.status);
      CHECK(got.out == expected.out);
      REQUIRE(got.sum == expected.sum);
      optimize::run_passes(module, options);
      REQUIRE(ptx::print(module) == after.ptx);
    }
  }
  CHECK(fired > static_cast<std::uint64_t>(kernels));
}
