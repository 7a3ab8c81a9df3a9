// tests/litmus/schedules_test.cpp - the emulator's schedules against the memory model
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <set>

#include "support/harness.hpp"
#include "token_litmus.hpp"

using namespace ptxgen::litmus;
using ptxgen::Severity;
using ptxgen::emulator::Result;
using ptxgen::emulator::Rule;
using ptxgen::emulator::RunFinding;

namespace {

bool reports_race(const Result& result, Severity at_most) {
  return std::ranges::any_of(result.findings, [&](const RunFinding& finding) {
    return (finding.rule == Rule::GlobalRace || finding.rule == Rule::ScopeTooNarrow) &&
           finding.finding.severity <= at_most;
  });
}

std::string findings_of(const Result& result) {
  std::string text;
  for (const RunFinding& finding : result.findings) text += to_text(finding) + "\n";
  return text;
}

/// Runs tests by the seeds 0, 1, ...
struct Schedules {
  int programs = 0;
  int runs = 0;
  int races = 0;
  std::size_t seen = 0;      ///< distinct outcomes, summed over the programs
  std::size_t possible = 0;  ///< that the model allows

  void run(const TokenTest& test, const Placement& placement, int seeds) {
    const ptxgen::BuiltKernel kernel = build(test, placement);
    const Allowed outcomes = allowed(lowered(kernel, placement));
    EmulatedTest emulated(kernel, placement);
    std::set<Outcome> found;
    for (int seed = 0; seed < seeds; ++seed) {
      INFO("seed " << seed);
      const Outcome outcome = emulated.run(static_cast<std::uint64_t>(seed));
      found.insert(outcome);
      ++runs;
      const auto at = outcomes.find(outcome);
      CHECK(at != outcomes.end());
      if (at != outcomes.end()) check_races(at->second, emulated.result());
    }
    ++programs;
    seen += found.size();
    possible += outcomes.size();
  }

  // Some outcomes have executions with a data race and others without.
  void check_races(const Executions& executions, const Result& result) {
    INFO(findings_of(result));
    if (!executions.race_free) {
      ++races;
      CHECK(reports_race(result, Severity::Warning));
    }
    // A plain read after a strong read of the same location has a warning though the two are
    // ordered by observation.
    if (!executions.racy) CHECK_FALSE(reports_race(result, Severity::Error));
  }
};

}  // namespace

TEST_CASE("falsification 67, 68: the emulator's outcomes and races are those of the model") {
  const int seeds = ptxgen::test::count(8, 1000);
  const std::uint64_t step = ptxgen::test::full() ? 1 : 16;
  std::uint64_t pair = ptxgen::test::seed();
  Schedules all;
  for (const Shape& shape : shapes()) {
    for (const Placement& placement : placements(shape.make({}, {}).threads.size())) {
      for (const Use a : uses_of(shape.first)) {
        for (const Use b : uses_of(shape.second)) {
          if (pair++ % step != 0) continue;
          INFO(shape.name << ", " << placement.name << ": " << to_text(a) << ", " << to_text(b));
          all.run(shape.make(a, b), placement, seeds);
        }
      }
    }
  }
  std::printf("%d programs, %d schedules (%d with races), %zu of %zu outcomes seen\n", all.programs,
              all.runs, all.races, all.seen, all.possible);
  CHECK(all.races > 0);
}

TEST_CASE("falsification 77: a scope that is too narrow is reported, by text") {
  // The thread that has seen the flag reads the data.
  const auto found = [](Use a, Use b, std::size_t placement_number) {
    const Shape& mp = shapes()[1];
    const Placement placement = placements(2)[placement_number];
    const ptxgen::BuiltKernel kernel = build(mp.make(a, b), placement);
    EmulatedTest emulated(kernel, placement);
    std::set<std::string> texts;
    for (int seed = 0; seed < 8; ++seed) {
      (void)emulated.run(static_cast<std::uint64_t>(seed));
      for (const RunFinding& finding : emulated.result().findings) {
        texts.insert(finding.finding.rule + ": " + finding.finding.message);
      }
    }
    std::string all;
    for (const std::string& text : texts) all += text + "\n";
    return all;
  };
  const Use release_cta{Order::Release, Scope::Cta};
  const Use release_cluster{Order::Release, Scope::Cluster};
  const Use release_gpu{Order::Release, Scope::Gpu};
  const Use acquire_cta{Order::Acquire, Scope::Cta};
  const Use acquire_cluster{Order::Acquire, Scope::Cluster};
  const Use acquire_gpu{Order::Acquire, Scope::Gpu};
  CHECK(found(release_cta, acquire_cta, 0) == "");
  CHECK(found(release_gpu, acquire_gpu, 1) == "");
  CHECK(found(release_cluster, acquire_cluster, 2) == "");
  CHECK(found(release_cta, acquire_gpu, 1) ==
        "scope-too-narrow: scope .cta of thread (0,0,0) of block (0,0,0) does not include thread "
        "(0,0,0) of block (1,0,0) at line 28; both access 4 bytes at 0x10000000104 (byte 4 of "
        "memory)\n"
        "scope-too-narrow: scope .cta of thread (0,0,0) of block (0,0,0) does not include thread "
        "(0,0,0) of block (1,0,0) at line 33; both access 4 bytes at 0x10000000100 (byte 0 of "
        "memory)\n");
  CHECK(found(release_gpu, acquire_cluster, 1) ==
        "scope-too-narrow: scope .cluster of thread (0,0,0) of block (1,0,0) does not include "
        "thread (0,0,0) of block (0,0,0) at line 23; both access 4 bytes at 0x10000000104 (byte 4 "
        "of memory)\n");
  CHECK(found(release_cluster, acquire_cta, 2) ==
        "scope-too-narrow: scope .cta of thread (0,0,0) of block (1,0,0) does not include thread "
        "(0,0,0) of block (0,0,0) at line 23; both access 4 bytes at 0x10000000104 (byte 4 of "
        "memory)\n");
}

TEST_CASE("reads alone have no scope that is too narrow") {
  const Step load{Kind::Load, 0, 0, {Order::Relaxed, Scope::Cta}};
  Schedules all;
  for (const Placement& placement : placements(2)) {
    EmulatedTest emulated(build({{{load}, {load}}}, placement), placement);
    (void)emulated.run(0);
    CHECK(findings_of(emulated.result()) == "");
    all.run({{{load}, {load}}}, placement, 4);
  }
  CHECK(all.races == 0);
}
