// tests/optimize/barrier_oracle_test.cpp - the gate against runs of random kernels
#include <catch2/catch.hpp>

#include <cstdlib>
#include <iostream>

#include "optimize/barrier_corpus.hpp"
#include "optimize/barrier_generator.hpp"
#include "ptxgen/optimize/gates.hpp"
#include "ptxgen/ptx.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

struct Tally {
  int kernels = 0, safe = 0, warned = 0, refused = 0, discarded = 0;
  int misses = 0;         // called safe, and failed
  int false_alarms = 0;   // reported, and failed in no run
  int refused_fails = 0;  // called an error, and failed in some run
};

enum class Said { Safe, Warning, Error };

Said judge(const BarrierKernel& kernel, std::string& text) {
  optimize::GateOptions options;
  if (kernel.shape_known) options.block = kernel.block;
  Said said = Said::Safe;
  for (const Finding& finding : optimize::barrier_safety(ptx::parse(kernel.ptx), options)) {
    text += to_text(finding) + "\n";
    // What is wrong with a function shows only in a kernel that comes to call it.
    const bool wrong = finding.severity == Severity::Error && finding.kernel == "kernel";
    said = std::max(said, wrong ? Said::Error : Said::Warning);
  }
  return said;
}

/// Whether a launch fails: of 50 schedules, with several values of the parameter.
bool fails(const BarrierKernel& kernel, int seeds, bool& discard, std::string& text) {
  constexpr std::array<std::uint32_t, 7> kValues = {33, 0, 1, 17, 100, 1000000, 40};
  BarrierProgram program(kernel.ptx);
  for (int seed = 0; seed < seeds; ++seed) {
    const std::uint32_t n = kValues[static_cast<std::size_t>(seed) % kValues.size()];
    const BarrierRun run = program.run(kernel.block, n, static_cast<std::uint64_t>(seed));
    discard = discard || run.over_budget;
    // Lanes that a vote waits for in vain may hold up others at a barrier that is right by itself.
    if (run.other_mask) {
      discard = true;
      return false;
    }
    if (run.fault) text = "n = " + std::to_string(n) + "\n" + run.findings;
    if (run.fault) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("no kernel that fails at a barrier is called safe") {
  const int kernels = count(600, 20000);
  const bool show = std::getenv("BARRIER_ORACLE_SHOW") != nullptr;
  Tally tally;
  for (int i = 0; i < kernels; ++i) {
    const std::uint64_t number = seed() * 1000003 + static_cast<std::uint64_t>(i);
    BarrierKernel kernel = random_barrier_kernel(number);
    std::string findings, why;
    bool discard = false;
    const Said said = judge(kernel, findings);
    bool failed = fails(kernel, 50, discard, why);
    if (!failed && said == Said::Error && !kernel.shape_known) {
      // The fault was seen in another shape.
      for (const auto& shape : {std::array<std::uint32_t, 3>{128, 1, 1}, {32, 4, 1}}) {
        kernel.block = shape;
        failed = failed || fails(kernel, 14, discard, why);
      }
    }
    ++tally.kernels;
    if (discard && !failed) {
      ++tally.discarded;
      continue;
    }
    tally.safe += said == Said::Safe ? 1 : 0;
    tally.warned += said == Said::Warning ? 1 : 0;
    tally.refused += said == Said::Error ? 1 : 0;
    tally.refused_fails += said == Said::Error && failed ? 1 : 0;
    tally.false_alarms += said != Said::Safe && !failed ? 1 : 0;
    if (said == Said::Safe && failed) {
      ++tally.misses;
      INFO("kernel " << number << "\n" << kernel.ptx << why);
      CHECK(said != Said::Safe);
    }
    if (said == Said::Error && !failed) {
      INFO("kernel " << number << "\n" << kernel.ptx << findings);
      CHECK(failed);
    }
    if (show && said == Said::Warning && !failed) std::cout << kernel.ptx << findings << "\n";
  }
  CHECK(tally.misses == 0);
  CHECK(tally.safe > kernels / 10);
  CHECK(tally.refused > kernels / 10);
  std::cout << tally.kernels << " kernels x 50 schedules: " << tally.safe << " called safe, "
            << tally.misses << " of them failed; " << tally.refused << " errors, "
            << tally.refused_fails << " of them failed; " << tally.warned << " warnings; "
            << tally.false_alarms << " reported and never failed; " << tally.discarded
            << " never ended\n";
}
