// tests/check/barrier_oracle_test.cpp - the gate against runs of random kernels
#include <catch2/catch.hpp>

#include <cstdlib>
#include <iostream>

#include "check/barrier_corpus.hpp"
#include "check/barrier_generator.hpp"
#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

struct Tally {
  int kernels = 0, safe = 0, warned = 0, refused = 0, discarded = 0;
  int exits = 0;          // nothing said but that threads leave before a barrier
  int exits_seen = 0;     // and so they did in some run
  int misses = 0;         // called safe, and failed
  int false_alarms = 0;   // reported, and failed in no run
  int refused_fails = 0;  // called an error, and failed in some run
};

enum class Verdict { Safe, Exits, Warning, Error };

Verdict judge(const BarrierKernel& kernel, std::string& text) {
  gates::GateOptions options;
  if (kernel.shape_known) options.block = kernel.block;
  Verdict verdict = Verdict::Safe;
  for (const Finding& finding : gates::barrier_safety(ptx::parse(kernel.ptx), options)) {
    text += to_text(finding) + "\n";
    // What is wrong with a function shows only in a kernel that calls it.
    const bool wrong = finding.severity == Severity::Error && finding.kernel == "kernel";
    const bool exits = finding.rule == "exited-before-barrier";
    verdict = std::max(verdict, wrong ? Verdict::Error : exits ? Verdict::Exits : Verdict::Warning);
  }
  return verdict;
}

/// Whether a launch fails: of 50 schedules, with several values of the parameter. `left`: whether
/// threads left the kernel before a barrier in one.
bool fails(const BarrierKernel& kernel, int seeds, bool& discard, bool& left, std::string& text) {
  constexpr std::array<std::uint32_t, 7> kValues = {33, 0, 1, 17, 100, 1000000, 40};
  BarrierProgram program(kernel.ptx);
  for (int seed = 0; seed < seeds; ++seed) {
    const std::uint32_t n = kValues[static_cast<std::size_t>(seed) % kValues.size()];
    const BarrierRun run = program.run(kernel.block, n, static_cast<std::uint64_t>(seed));
    discard = discard || run.over_budget;
    // Lanes that a vote waits for without success may hold up others at a barrier that is right by
    // itself.
    if (run.other_mask) {
      discard = true;
      return false;
    }
    left = left || run.left;
    if (run.fault || run.left) text = "n = " + std::to_string(n) + "\n" + run.findings;
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
    bool discard = false, left = false;
    const Verdict verdict = judge(kernel, findings);
    const bool failed = fails(kernel, 50, discard, left, why);
    ++tally.kernels;
    if (discard && !failed && !left) {
      ++tally.discarded;
      continue;
    }
    tally.safe += verdict == Verdict::Safe ? 1 : 0;
    tally.warned += verdict == Verdict::Warning ? 1 : 0;
    tally.exits += verdict == Verdict::Exits ? 1 : 0;
    tally.exits_seen += verdict == Verdict::Exits && left ? 1 : 0;
    tally.refused += verdict == Verdict::Error ? 1 : 0;
    tally.refused_fails += verdict == Verdict::Error && (failed || left) ? 1 : 0;
    tally.false_alarms += verdict != Verdict::Safe && !failed && !left ? 1 : 0;
    // A thread reported to leave may do so, but nothing else is to happen at a barrier.
    const bool missed =
        (verdict == Verdict::Safe && (failed || left)) || (verdict == Verdict::Exits && failed);
    if (missed) {
      ++tally.misses;
      INFO("kernel " << number << "\n" << kernel.ptx << findings << why);
      CHECK_FALSE(missed);
    }
    // A run may end with threads that leave before it reaches the fault.
    if (verdict == Verdict::Error && !failed && !left) {
      INFO("kernel " << number << "\n" << kernel.ptx << findings);
      CHECK(failed);
    }
    if (show && verdict == Verdict::Warning && !failed) std::cout << kernel.ptx << findings << "\n";
  }
  CHECK(tally.misses == 0);
  CHECK(tally.safe > kernels / 10);
  CHECK(tally.refused > kernels / 20);
  CHECK(tally.exits_seen > kernels / 40);
  std::cout << tally.kernels << " kernels x 50 schedules: " << tally.safe << " called safe, "
            << tally.misses << " of them failed; " << tally.refused << " errors, "
            << tally.refused_fails << " of them failed; " << tally.exits
            << " times threads may leave early, and did " << tally.exits_seen << " times; "
            << tally.warned << " warnings; " << tally.false_alarms << " reported and never failed; "
            << tally.discarded << " never ended\n";
}
