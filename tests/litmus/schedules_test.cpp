// tests/litmus/schedules_test.cpp - the emulator's schedules against the memory model
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "support/harness.hpp"
#include "token_litmus.hpp"

using namespace ptxgen::litmus;

TEST_CASE("falsification 68: outcomes of the emulator are among those that the model allows") {
  const int seeds = ptxgen::test::count(20, 1000);
  std::size_t runs = 0;
  std::size_t seen = 0;
  std::size_t possible = 0;
  for (const Shape& shape : shapes()) {
    const std::size_t threads = shape.make({}, {}).threads.size();
    for (const Placement& placement : placements(threads)) {
      const Use a = uses_of(shape.first).back();
      const Use b = uses_of(shape.second).back();
      const ptxgen::BuiltKernel kernel = build(shape.make(a, b), placement);
      const Allowed outcomes = allowed(lowered(kernel, placement));
      EmulatedTest emulated(kernel, placement);
      std::set<Outcome> found;
      for (int seed = 0; seed < seeds; ++seed) {
        const Outcome outcome = emulated.run(static_cast<std::uint64_t>(seed));
        INFO(shape.name << ", " << placement.name << ", seed " << seed);
        CHECK(outcomes.contains(outcome));
        found.insert(outcome);
        ++runs;
      }
      seen += found.size();
      possible += outcomes.size();
    }
  }
  WARN(runs << " runs, " << seen << " of " << possible << " outcomes seen");
}
