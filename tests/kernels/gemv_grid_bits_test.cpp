// tests/kernels/gemv_grid_bits_test.cpp - GEMV results that must be equal bit for bit
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gemv_grid_run.hpp"
#include "ptx/dice.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

GemvCase point_of(GemvLayout layout, ElementType type, std::uint32_t k, std::uint32_t n) {
  GemvCase point;
  point.target = "sm_90";
  point.plan.problem.layout = layout;
  point.plan.problem.weights = type;
  point.plan.problem.k = k;
  point.plan.problem.n = n;
  point.plan.load_bytes = widest_load(point.plan.problem);
  return point;
}

/// Three shapes: columns split over many blocks, rows over a few, and no split but odd extents.
std::vector<GemvCase> three_points() {
  GemvCase columns = point_of(GemvLayout::T, ElementType::f32, 200, 256);
  columns.plan.warps_out = 1;
  columns.plan.warps_k = 2;
  columns.plan.unroll = 2;
  columns.plan.blocks = 20;
  GemvCase rows = point_of(GemvLayout::R, ElementType::bf16, 2048, 6);
  rows.plan.problem.bias = true;
  rows.plan.problem.y = ElementType::bf16;
  rows.plan.warps_out = 1;
  rows.plan.rows = 2;
  rows.plan.unroll = 1;
  rows.plan.blocks = 7;
  rows.plan.chunk_steps = 2;
  GemvCase odd = point_of(GemvLayout::R, ElementType::f16, 257, 31);
  odd.plan.warps_out = 2;
  odd.plan.warps_k = 2;
  odd.plan.rows = 4;
  odd.plan.unroll = 2;
  odd.plan.blocks = 4;
  return {columns, rows, odd};
}

/// The same shapes on the other paths and with clusters, as far as they are admitted.
std::vector<GemvCase> other_points() {
  std::vector<GemvCase> result;
  for (const GemvCase& point : three_points()) {
    for (const GemvPath path : {GemvPath::Direct, GemvPath::Async, GemvPath::Bulk}) {
      for (const std::uint32_t cluster : {1u, 2u, 4u}) {
        GemvCase other = point;
        GemvPlan& plan = other.plan;
        plan.path = path;
        plan.stages = path == GemvPath::Direct ? 0 : 3;
        plan.cluster = cluster;
        if (cluster > 1) {
          plan.chunk_steps = 0;
          plan.blocks = static_cast<std::uint32_t>(plan.strips() * cluster);
        }
        const bool another = path != GemvPath::Direct || cluster != 1;
        if (another && admitted(plan, other.target)) result.push_back(other);
      }
    }
  }
  return result;
}

std::vector<GemvCase> all_points() {
  std::vector<GemvCase> result = three_points();
  for (const GemvCase& point : other_points()) result.push_back(point);
  return result;
}

/// Launches many times, in other orders on other numbers of threads.
void check_repeats(const GemvCase& point, int runs) {
  INFO(to_text(point));
  GemvRunner runner(point, make_data(point));
  const GemvOutcome first = runner.run();
  REQUIRE(first.findings == "");
  for (int i = 1; i < runs; ++i) {
    INFO("run " << i);
    emulator::Options options;
    options.seed = static_cast<std::uint64_t>(i);
    options.threads = static_cast<unsigned>(i % 3 + 1);
    options.parallel = i % 2 == 1;
    options.counters = false;
    const GemvOutcome again = runner.run(options);
    REQUIRE(again.findings == "");
    REQUIRE((again.y == first.y));
  }
}

std::vector<float> values(const GemvCase& point, const std::vector<std::byte>& y) {
  std::vector<float> result(point.plan.problem.n);
  for (std::size_t j = 0; j < result.size(); ++j) result[j] = element(y, point.plan.problem.y, j);
  return result;
}

}  // namespace

TEST_CASE("many runs in one workspace give the same bits") {
  for (const GemvCase& point : three_points()) check_repeats(point, count(50, 1000));
  for (const GemvCase& point : other_points()) check_repeats(point, count(10, 200));
}

TEST_CASE("with chunks the bits do not depend on the number of blocks") {
  int compared = 0;
  for (const GemvPath path : {GemvPath::Direct, GemvPath::Async, GemvPath::Bulk}) {
    for (unsigned variant = 0; variant < 24; ++variant) {
      constexpr ElementType kFloats[] = {ElementType::f32, ElementType::f16, ElementType::bf16};
      constexpr std::uint32_t kChunks[] = {1, 2, 3, 5};
      const bool columns = variant % 2 == 0;
      const ElementType type = kFloats[variant / 2 % 3];
      GemvCase point = columns ? point_of(GemvLayout::T, type, 131, 264)
                               : point_of(GemvLayout::R, type, 2008, 5);
      GemvPlan& plan = point.plan;
      plan.path = path;
      plan.stages = path == GemvPath::Direct ? 0 : 2;
      plan.chunk_steps = kChunks[variant / 6];
      plan.warps_out = 1;
      plan.warps_k = plan.chunk_steps == 2 ? 2 : 1;
      plan.unroll = columns ? 3 : 1;
      plan.rows = columns ? 1 : 2;
      const GemvData data = make_data(point);
      std::vector<std::byte> first;
      const auto units = static_cast<std::uint32_t>(plan.units());
      for (const std::uint32_t blocks : {1u, 2u, 3u, 7u, 13u, 32u, 64u, 128u, 132u, units}) {
        plan.blocks = blocks;
        if (!admitted(plan, point.target)) continue;
        INFO(to_text(point));
        const GemvOutcome outcome = GemvRunner(point, data).run();
        CHECK(outcome.findings == "");
        if (first.empty()) first = outcome.y;
        CHECK((outcome.y == first));
        ++compared;
      }
    }
  }
  CHECK(compared >= 80);
}

TEST_CASE("the default passes keep the bits") {
  const std::vector<GemvCase> grid = gemv_grid(400);
  const std::size_t step = full() ? 2 : 9;
  std::size_t changed = 0;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < grid.size(); i += step) {
    const GemvCase& point = grid[i];
    INFO(to_text(point));
    const GemvData data = make_data(point);
    const ptx::Module plain = Gemv{point.plan}.build(ptx::target(point.target)).module();
    ptx::Module optimised = plain;
    if (optimize::run_passes(optimised).changed()) ++changed;
    const GemvOutcome before = GemvRunner(point, data, plain).run();
    const GemvOutcome after = GemvRunner(point, data, optimised).run();
    CHECK(after.findings == "");
    CHECK((before.y == after.y));
    ++compared;
  }
  CHECK(compared >= 40);
  CHECK(changed > compared / 2);
}

TEST_CASE("numbers that f32 holds exactly come out exactly") {
  std::size_t compared = 0;
  for (GemvCase point : gemv_grid(400)) {
    if (point.seed % 7 != 0) continue;
    point = bare(point);
    INFO(to_text(point));
    const GemvProblem& problem = point.plan.problem;
    GemvData data = make_data(point);
    // Small whole numbers: no order of summation rounds anything.
    for (std::size_t i = 0; i < problem.matrix_elements(); ++i) {
      set_element(data.a, problem.weights, i, static_cast<float>((i * 7 + i / 5) % 17) - 8.0f);
    }
    for (std::size_t i = 0; i < problem.k; ++i) {
      set_element(data.x, problem.x, i, static_cast<float>(i * 5 % 13) - 6.0f);
    }
    const GemvExact exact = exact_gemv(problem, data);
    const std::vector<float> y = GemvRunner(point, data).run().floats();
    CHECK(std::equal(y.begin(), y.end(), exact.y.begin(), exact.y.end()));
    ++compared;
  }
  CHECK(compared >= 40);
}

TEST_CASE("the identity gives x, equal columns give equal sums") {
  for (const GemvPath path : {GemvPath::Direct, GemvPath::Async, GemvPath::Bulk}) {
    for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
      GemvCase point = point_of(layout, ElementType::f32, 264, 264);
      GemvPlan& plan = point.plan;
      plan.path = path;
      plan.stages = path == GemvPath::Direct ? 0 : 3;
      plan.rows = layout == GemvLayout::R ? 3 : 1;
      plan.warps_k = 2;
      plan.unroll = 2;
      plan.blocks =
          static_cast<std::uint32_t>(plan.strips() * std::min<std::uint64_t>(plan.steps(), 2));
      if (!admitted(plan, point.target)) continue;
      INFO(to_text(point));
      GemvData data = make_data(point);
      std::fill(data.a.begin(), data.a.end(), std::byte{0});
      for (std::size_t i = 0; i < 264; ++i) set_element(data.a, ElementType::f32, i * 265, 1.0f);
      CHECK((GemvRunner(point, data).run().y == data.x));
      for (std::size_t i = 0; i < 264 * 264; ++i) set_element(data.a, ElementType::f32, i, 1.0f);
      const std::vector<float> y = GemvRunner(point, data).run().floats();
      CHECK(std::equal(y.begin() + 1, y.end(), y.begin()));
    }
  }
}

TEST_CASE("zeros, infinities, NaN and the smallest numbers") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (GemvCase point : all_points()) {
    point = bare(point);
    INFO(to_text(point));
    const GemvProblem& problem = point.plan.problem;
    const bool columns = problem.layout == GemvLayout::T;
    const auto at = [&](std::size_t i, std::size_t j) {
      return columns ? i * problem.n + j : j * problem.k + i;
    };
    GemvData zero = make_data(point);
    std::fill(zero.a.begin(), zero.a.end(), std::byte{0});
    const std::vector<float> zeros = GemvRunner(point, zero).run().floats();
    CHECK(std::all_of(zeros.begin(), zeros.end(),
                      [](float value) { return value == 0.0f && !std::signbit(value); }));
    // One infinity, one NaN, one sum beyond the largest number: each in its output and no other.
    GemvData special = make_data(point);
    for (std::size_t i = 0; i < problem.k; ++i) set_element(special.x, problem.x, i, 1.0f);
    set_element(special.a, problem.weights, at(problem.k - 1, 1), -kInfinity);
    set_element(special.a, problem.weights, at(problem.k / 2, 3),
                std::numeric_limits<float>::quiet_NaN());
    const bool overflows = problem.weights != ElementType::f16;
    for (const std::size_t i : {std::size_t{0}, std::size_t{problem.k - 1}}) {
      if (overflows) set_element(special.a, problem.weights, at(i, 4), 0x1.fep127f);
    }
    const std::vector<float> y = values(point, GemvRunner(point, special).run().y);
    for (std::size_t j = 0; j < y.size(); ++j) {
      const bool infinite = j == 1 || (j == 4 && overflows);
      if (std::isnan(y[j]) != (j == 3) || std::isinf(y[j]) != infinite) {
        FAIL_CHECK("y[" << j << "] = " << y[j]);
      }
    }
    CHECK(y[1] == -kInfinity);
    // Nothing is flushed to zero: two of the smallest numbers of the type add up.
    GemvData tiny = zero;
    for (std::size_t i = 0; i < problem.k; ++i) set_element(tiny.x, problem.x, i, 1.0f);
    const float min = problem.weights == ElementType::f32    ? 0x1p-149f
                      : problem.weights == ElementType::bf16 ? 0x1p-133f
                                                             : 0x1p-24f;
    set_element(tiny.a, problem.weights, at(0, 2), min);
    set_element(tiny.a, problem.weights, at(problem.k - 1, 2), min);
    CHECK(GemvRunner(point, tiny).run().floats()[2] == 2 * min);
  }
}

/// What an f32 sum of these numbers is, one after another.
float sum_in_order(const std::vector<float>& parts) {
  float sum = 0;
  for (const float part : parts) sum = sum + part;
  return sum;
}

TEST_CASE("parts are added in the order of k: of steps, chunks, stacked warps, blocks, clusters") {
  std::size_t compared = 0;
  for (unsigned variant = 0; variant < 60; ++variant) {
    Dice dice(variant);
    const bool columns = variant % 2 == 0;
    GemvCase point = point_of(columns ? GemvLayout::T : GemvLayout::R, ElementType::f32, 1, 1);
    GemvPlan& plan = point.plan;
    plan.warps_out = 1;
    plan.unroll = 1;
    plan.load_bytes = columns ? 16 : 4;
    constexpr std::uint32_t kStacks[] = {1, 1, 1, 4, 5, 8};
    plan.warps_k = kStacks[variant / 2 % 6];
    plan.cluster = variant % 3 == 2 ? 4 : 1;
    const bool chunks = plan.cluster == 1 && variant % 4 < 2;
    plan.chunk_steps = chunks ? 1 : 0;
    // Each part is one number: a row of a column, or the first lane's weight of a row.
    const std::uint32_t parts = plan.warps_k * plan.cluster * dice.between(1, 11);
    const std::uint32_t wide = columns ? 1 : 32;
    plan.problem.n = columns ? 128 : 3;
    plan.problem.k = parts * wide;
    plan.blocks = static_cast<std::uint32_t>(plan.units());
    if (!admitted(plan, point.target)) continue;
    INFO(to_text(point));
    GemvData data = make_data(point);
    std::fill(data.a.begin(), data.a.end(), std::byte{0});
    std::vector<float> expected;
    for (std::uint32_t j = 0; j < plan.problem.n; ++j) {
      std::vector<float> numbers;
      for (std::uint32_t p = 0; p < parts; ++p) {
        // Of all sizes, so that any other order rounds to something else.
        const auto mantissa = static_cast<float>(dice.between(1u << 23, (1u << 24) - 1));
        const int exponent = static_cast<int>(dice.below(16)) - 30;
        const float number = std::ldexp(dice.chance(50) ? mantissa : -mantissa, exponent);
        numbers.push_back(number);
        const std::size_t i = std::size_t{p} * wide;
        const std::size_t index = columns ? i * plan.problem.n + j : j * plan.problem.k + i;
        set_element(data.a, ElementType::f32, index, number);
      }
      // First the stacked warps of a block, then the blocks of a cluster, then the others.
      for (const std::uint32_t together : {plan.warps_k, plan.cluster}) {
        std::vector<float> sums;
        for (std::size_t p = 0; p < numbers.size(); p += together) {
          sums.push_back(
              sum_in_order({numbers.begin() + static_cast<std::ptrdiff_t>(p),
                            numbers.begin() + static_cast<std::ptrdiff_t>(p + together)}));
        }
        numbers = sums;
      }
      expected.push_back(sum_in_order(numbers));
    }
    for (std::uint32_t i = 0; i < plan.problem.k; ++i)
      set_element(data.x, ElementType::f32, i, 1.0f);
    CHECK((GemvRunner(point, data).run().floats() == expected));
    ++compared;
  }
  CHECK(compared >= 40);
}

TEST_CASE("a result beyond the 16-bit type becomes infinite, one halfway goes to even") {
  for (unsigned variant = 0; variant < 4; ++variant) {
    const ElementType type = variant % 2 == 0 ? ElementType::f16 : ElementType::bf16;
    GemvCase point = point_of(GemvLayout::R, type, 2, 5);
    if (variant >= 2) point.target = "sm_75";  // which has no instruction that rounds to bf16
    GemvProblem& problem = point.plan.problem;
    problem.y = type;
    problem.x = ElementType::f32;
    point.plan.rows = 1;
    point.plan.load_bytes = widest_load(problem);
    INFO(to_text(point));
    const bool half = type == ElementType::f16;
    // The weights are 1 and 1; x carries what f32 can hold and the type cannot.
    const float ulp = half ? 0x1p-10f : 0x1p-7f;
    const struct {
      float x0, x1, y;
    } rows[] = {
        {1.0f, ulp / 2, 1.0f},                         // halfway, down to even
        {1.0f + ulp, ulp / 2, 1.0f + 2 * ulp},         // halfway, up to even
        {1.0f, ulp / 2 * (1 + 0x1p-10f), 1.0f + ulp},  // above
        {-1.0f, -ulp / 2, -1.0f},
        {half ? 65520.0f : std::numeric_limits<float>::max(), 0.0f,
         std::numeric_limits<float>::infinity()},
    };
    for (const auto& row : rows) {
      GemvData data = make_data(point);
      for (std::size_t i = 0; i < 10; ++i) set_element(data.a, type, i, 1.0f);
      set_element(data.x, ElementType::f32, 0, row.x0);
      set_element(data.x, ElementType::f32, 1, row.x1);
      for (const float value : values(point, GemvRunner(point, data).run().y)) {
        CHECK(value == row.y);
      }
    }
  }
}
