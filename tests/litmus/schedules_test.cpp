// tests/litmus/schedules_test.cpp - the emulator's schedules against the memory model
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "support/harness.hpp"
#include "token_litmus.hpp"

using namespace ptxgen::litmus;
using ptxgen::emulator::Rule;
using ptxgen::emulator::RunFinding;

namespace {

bool reports_race(const ptxgen::emulator::Result& result) {
  return std::ranges::any_of(result.findings, [](const RunFinding& finding) {
    return finding.rule == Rule::GlobalRace || finding.rule == Rule::ScopeTooNarrow;
  });
}

std::string findings_of(const ptxgen::emulator::Result& result) {
  std::string text;
  for (const RunFinding& finding : result.findings) text += to_text(finding) + "\n";
  return text;
}

/// Runs a test of a shape by seeds.
struct Schedules {
  std::size_t programs = 0;
  std::size_t runs = 0;
  std::size_t seen = 0;      ///< distinct outcomes, summed over the programs
  std::size_t possible = 0;  ///< that the model allows
  std::size_t checked = 0;   ///< runs whose outcome says whether there was a data race
  std::map<std::string, int> wrong;

  void run(const TokenTest& test, const Placement& placement, int seeds, const std::string& name) {
    const ptxgen::BuiltKernel kernel = build(test, placement);
    const Allowed outcomes = allowed(lowered(kernel, placement));
    EmulatedTest emulated(kernel, placement);
    std::set<Outcome> found;
    for (int seed = 0; seed < seeds; ++seed) {
      const Outcome outcome = emulated.run(static_cast<std::uint64_t>(seed));
      found.insert(outcome);
      ++runs;
      const auto at = outcomes.find(outcome);
      INFO(name << ", seed " << seed);
      CHECK(at != outcomes.end());
      if (at == outcomes.end() || at->second.racy == at->second.race_free) continue;
      ++checked;
      const bool reported = reports_race(emulated.result());
      if (reported != at->second.racy) {
        ++wrong[name + (reported ? " REPORTED" : " missed") + "\n" + findings_of(emulated.result())];
      }
    }
    ++programs;
    seen += found.size();
    possible += outcomes.size();
  }
};

}  // namespace

TEST_CASE("falsification 68: outcomes of the emulator are among those that the model allows") {
  const int seeds = ptxgen::test::count(20, 1000);
  Schedules all;
  for (const Shape& shape : shapes()) {
    for (const Placement& placement : placements(shape.make({}, {}).threads.size())) {
      for (const Use a : uses_of(shape.first)) {
        for (const Use b : uses_of(shape.second)) {
          all.run(shape.make(a, b), placement, seeds,
                  std::string(shape.name) + ", " + std::string(placement.name) + ": " +
                      to_text(a) + ", " + to_text(b));
        }
      }
    }
  }
  WARN(all.programs << " programs, " << all.runs << " runs, " << all.seen << " of " << all.possible
                    << " outcomes seen, " << all.checked << " checked");
  WARN(all.wrong.size());
  int n = 0;
  for (const auto& [name, count] : all.wrong) { if (n++ < 4000) WARN(count << ": " << name); }
}
