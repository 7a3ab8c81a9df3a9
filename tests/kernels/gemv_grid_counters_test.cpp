// tests/kernels/gemv_grid_counters_test.cpp - what GEMV plans move, counted
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>
#include <map>

#include "gemv_grid_run.hpp"
#include "gemv_operands.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

/// Of all lines that read weights, by lanes or by copies.
emulator::MemoryCounters weights_read(const GemvRunner& runner,
                                      const emulator::Counters& counters) {
  emulator::MemoryCounters total;
  const auto lines = operands_of_lines(ptx::parse(runner.ptx()));
  for (const emulator::LineCounters& line : counters.lines) {
    const auto found = lines.find(line.line);
    if (found == lines.end() || found->second != "a") continue;
    total.requests += line.memory.requests;
    total.sectors += line.memory.sectors + line.bulk.sectors;
    total.ideal_sectors += line.memory.ideal_sectors;
    total.bytes += line.memory.bytes + line.bulk.bytes;
  }
  return total;
}

}  // namespace

TEST_CASE("aligned matrices: each weight once, full sectors, no bank conflicts") {
  std::size_t counted = 0;
  std::map<GemvPath, std::size_t> paths;
  for (const GemvCase& point : gemv_aligned_cases()) {
    INFO(to_text(point));
    const GemvProblem& problem = point.plan.problem;
    const std::uint64_t matrix = std::uint64_t{problem.k} * problem.n * bytes(problem.weights);
    GemvRunner runner(point, make_data(point));
    const GemvOutcome outcome = runner.run();
    CHECK(outcome.findings == "");
    const emulator::Counters& counters = outcome.counters;
    CHECK(counters.shared_load.bank_conflicts == 0);
    CHECK(counters.shared_store.bank_conflicts == 0);
    CHECK(counters.local_load.requests + counters.local_store.requests == 0);
    // x, the operands of the epilogue and partial sums too: nothing is moved that is not needed.
    CHECK(counters.global_load.sectors == counters.global_load.ideal_sectors);
    CHECK(counters.global_store.sectors == counters.global_store.ideal_sectors);
    // With bulk copies one thread of a block goes its own way for each step.
    if (point.plan.path != GemvPath::Bulk) {
      CHECK(counters.divergent_branches <=
            point.plan.blocks * point.plan.warps_out * point.plan.warps_k * 4ull);
    }
    const emulator::MemoryCounters weights = weights_read(runner, counters);
    CHECK(weights.bytes == matrix);
    CHECK(weights.sectors * 32 == matrix);
    if (point.plan.path != GemvPath::Bulk) {
      CHECK(weights.requests * 32 * point.plan.load_bytes == matrix);
      CHECK(weights.sectors == weights.requests * 16);
    }
    ++counted;
    ++paths[point.plan.path];
  }
  std::printf("gemv counters: %zu plans, each weight byte read once, 16 sectors a request\n",
              counted);
  for (const GemvPath path : {GemvPath::Direct, GemvPath::Async, GemvPath::Bulk}) {
    CHECK(paths[path] >= 12);
  }
}

TEST_CASE("narrow loads: 8, 4 and 2 bytes a lane fill their sectors") {
  for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
    for (const std::uint32_t load : {8u, 4u, 2u}) {
      GemvCase point;
      point.target = "sm_90";
      GemvPlan& plan = point.plan;
      plan.problem.layout = layout;
      plan.problem.weights = load == 2 ? ElementType::bf16 : ElementType::f32;
      if (load == 4) plan.problem.weights = ElementType::f16;
      plan.load_bytes = load;
      plan.warps_out = 2;
      plan.unroll = 2;
      plan.problem.n = layout == GemvLayout::T ? plan.strip_outputs() * 2 : 6;
      plan.problem.k = plan.step_elements() * 4;
      plan.blocks = static_cast<std::uint32_t>(plan.strips());
      INFO(to_text(point));
      GemvRunner runner(point, make_data(point));
      const GemvOutcome outcome = runner.run();
      CHECK(outcome.findings == "");
      const emulator::MemoryCounters weights = weights_read(runner, outcome.counters);
      CHECK(weights.sectors == weights.requests * load);
      CHECK(weights.sectors * 32 ==
            std::uint64_t{plan.problem.k} * plan.problem.n * bytes(plan.problem.weights));
    }
  }
}

TEST_CASE("on the whole grid no weight is read twice, and none is left out") {
  const std::vector<GemvCase> grid = gemv_grid(400);
  const std::size_t step = full() ? 1 : 5;
  std::uint64_t worst_conflicts = 0;
  for (std::size_t i = 0; i < grid.size(); i += step) {
    const GemvCase& point = grid[i];
    INFO(to_text(point));
    const GemvProblem& problem = point.plan.problem;
    GemvRunner runner(point, make_data(point));
    const GemvOutcome outcome = runner.run();
    const emulator::MemoryCounters weights = weights_read(runner, outcome.counters);
    CHECK(weights.bytes == std::uint64_t{problem.k} * problem.n * bytes(problem.weights));
    worst_conflicts = std::max(worst_conflicts, outcome.counters.shared_load.bank_conflicts +
                                                    outcome.counters.shared_store.bank_conflicts);
  }
  CHECK(worst_conflicts == 0);
}
