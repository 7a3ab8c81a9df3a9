// tests/kernels/gemv_grid_plan_test.cpp - what follows from a GEMV plan, counted one by one
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

#include "gemv_grid_cases.hpp"
#include "ptx/dice.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

/// Blocks that have units of a strip, for each strip.
std::vector<std::uint64_t> contributors(const GemvPlan& plan) {
  std::vector<std::uint64_t> result(static_cast<std::size_t>(plan.strips()));
  for (std::uint64_t b = 0; b < plan.blocks; ++b) {
    const std::uint64_t first = plan.first_unit(b);
    const std::uint64_t end = plan.first_unit(b + 1);
    if (first == end) continue;
    for (std::uint64_t s = first / plan.steps(); s <= (end - 1) / plan.steps(); ++s) {
      ++result[static_cast<std::size_t>(s)];
    }
  }
  return result;
}

/// What is wrong, or nothing.
std::string wrong(const GemvPlan& plan) {
  const std::uint64_t units = plan.units();
  if (plan.first_unit(0) != 0 || plan.first_unit(plan.blocks) != units) return "the ends";
  const std::uint64_t granule = std::max(plan.chunk_steps, 1u);
  for (std::uint64_t b = 0; b < plan.blocks; ++b) {
    const std::uint64_t first = plan.first_unit(b);
    const std::uint64_t here = plan.first_unit(b + 1) - first;
    // Equal bytes for all, as far as whole steps, or chunks, allow.
    if (here + 2 * granule < units / plan.blocks || here > units / plan.blocks + 2 * granule)
      return "the share of block " + std::to_string(b);
    if (plan.chunk_steps == 0 ? first != b * units / plan.blocks
                              : first % plan.steps() % granule != 0)
      return "the first unit of block " + std::to_string(b);
  }
  const std::vector<std::uint64_t> blocks = contributors(plan);
  const std::uint64_t largest = *std::max_element(blocks.begin(), blocks.end());
  if (*std::min_element(blocks.begin(), blocks.end()) < 1) return "a strip without a block";
  if (plan.is_split() != (largest > 1)) return "is_split";
  const std::uint64_t chunks =
      plan.chunk_steps == 0 ? 0 : (plan.steps() + plan.chunk_steps - 1) / plan.chunk_steps;
  if (plan.max_parts() != (plan.chunk_steps != 0 ? chunks : largest / plan.cluster))
    return "max_parts";
  if ((plan.workspace_bytes() != 0) != (plan.max_parts() > 1)) return "whether it has a workspace";
  if (plan.workspace_bytes() == 0) return "";
  std::uint64_t parts = 0;
  for (const std::uint64_t of_strip : blocks) {
    parts += plan.chunk_steps != 0 ? chunks : of_strip / plan.cluster;
  }
  if (plan.ticket_bytes() < 4 * plan.strips() || plan.ticket_bytes() % 16 != 0)
    return "the tickets";
  if (plan.workspace_bytes() < plan.ticket_bytes() + parts * plan.strip_outputs() * 4 ||
      plan.workspace_bytes() % 16 != 0)
    return "the workspace";
  return "";
}

}  // namespace

TEST_CASE("units, contributors and parts of the grid's plans, counted") {
  const std::vector<GemvCase> grid = gemv_grid(static_cast<std::size_t>(count(600, 6000)));
  std::size_t split = 0;
  for (const GemvCase& point : grid) {
    INFO(to_text(point));
    CHECK(wrong(point.plan) == "");
    if (point.plan.is_split()) ++split;
  }
  CHECK(split > grid.size() / 3);
}

TEST_CASE("the same for plans of any number of strips, steps and blocks") {
  Dice dice(7);
  GemvPlan plan;
  plan.warps_out = 1;
  plan.unroll = 1;
  int counted = 0;
  for (int i = 0; i < count(4000, 40000); ++i) {
    plan.problem.n = 128 * dice.between(1, 13);
    plan.problem.k = dice.between(1, 40);
    plan.chunk_steps = dice.chance(30) ? dice.between(1, 9) : 0;
    plan.blocks = dice.between(1, 60);
    if (!admitted(plan, "sm_90")) continue;
    INFO(to_text(plan.problem) << " | " << to_text(plan));
    CHECK(wrong(plan) == "");
    ++counted;
  }
  CHECK(counted > 1000);
}
