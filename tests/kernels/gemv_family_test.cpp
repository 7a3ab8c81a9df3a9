// tests/kernels/gemv_family_test.cpp - kernels of GEMV plans on the emulator
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/emulator.hpp"
#include "ptxgen/kernels.hpp"
#include "support/half.hpp"
#include "support/harness.hpp"

using namespace ptxgen;

namespace {

using Bytes = std::vector<std::byte>;

GemvProblem problem(std::uint32_t k, std::uint32_t n, GemvLayout layout = GemvLayout::T,
                    ElementType weights = ElementType::f32) {
  GemvProblem p;
  p.k = k;
  p.n = n;
  p.layout = layout;
  p.weights = weights;
  return p;
}

void put(Bytes& array, std::uint64_t i, ElementType type, float value) {
  if (type == ElementType::f32) {
    std::memcpy(array.data() + 4 * i, &value, 4);
    return;
  }
  const std::uint16_t bits = type == ElementType::f16 ? float_to_f16(value) : float_to_bf16(value);
  std::memcpy(array.data() + 2 * i, &bits, 2);
}
double get(const Bytes& array, std::uint64_t i, ElementType type) {
  if (type == ElementType::f32) {
    float value = 0;
    std::memcpy(&value, array.data() + 4 * i, 4);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, array.data() + 2 * i, 2);
  return type == ElementType::f16 ? f16_to_float(bits) : bf16_to_float(bits);
}

// Operands of a problem: small integers, whose sums are exact in any order, or any floats.
struct Operands {
  Bytes a, x, y, bias, residual;
  Operands(const GemvProblem& p, bool integers, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto fill = [&](Bytes& array, std::uint64_t count, ElementType type) {
      array.resize(count * bytes(type));
      for (std::uint64_t i = 0; i < count; ++i) {
        const auto raw = static_cast<double>(random() >> 11) * 0x1p-53;
        put(array, i, type, static_cast<float>(integers ? std::floor(raw * 7) - 3 : raw * 2 - 1));
      }
    };
    fill(a, p.matrix_elements(), p.weights);
    fill(x, p.k, p.x);
    fill(y, p.scaled ? p.n : 0, p.y);
    fill(bias, p.bias ? p.n : 0, p.y);
    fill(residual, p.residual ? p.n : 0, p.y);
  }
};

constexpr std::byte kSentinel{0xa5};
constexpr std::uint64_t kAround = 64;

// One plan on a device of its own. Operands are as far off as the problem's alignments allow.
struct Outcome {
  Bytes y;
  emulator::Counters counters;
};
Outcome run(const GemvPlan& plan, const Operands& operands, std::string_view target = "sm_90",
            std::uint64_t seed = 0, float alpha = 2, float beta = 3) {
  const GemvProblem& p = plan.problem;
  const auto kernel = Gemv{plan}.build(ptx::target(target));
  emulator::Device device(emulator::default_gpu(target));
  emulator::Program program = emulator::Program::load(device, kernel.module());
  const auto place = [&](const Bytes& array, std::uint32_t alignment) {
    const std::uint64_t off = alignment >= 16 ? 0 : alignment;
    const std::uint64_t at = device.allocate(array.size() + off + 1) + off;
    device.write(at, array);
    return at;
  };
  const std::uint64_t a = place(operands.a, p.a_alignment);
  const std::uint64_t x = place(operands.x, p.x_alignment);
  const std::uint64_t bias = place(operands.bias, p.y_alignment);
  const std::uint64_t residual = place(operands.residual, p.y_alignment);
  const std::uint64_t y_bytes = std::uint64_t{p.n} * bytes(p.y);
  const std::uint64_t off = p.y_alignment >= 16 ? 0 : p.y_alignment;
  const std::uint64_t around = device.allocate(y_bytes + 2 * kAround + off);
  device.fill(around, kSentinel, y_bytes + 2 * kAround + off);
  const std::uint64_t y = around + kAround + off;
  if (p.scaled) device.write(y, operands.y);
  std::uint64_t workspace = 0;
  if (plan.workspace_bytes() != 0) {
    workspace = device.allocate(plan.workspace_bytes());
    device.fill(workspace, std::byte{0}, plan.ticket_bytes());
  }
  const auto block = Gemv::KernelType::pack(
      DeviceAddress<b8>{y}, DeviceAddress<b8>{a}, DeviceAddress<b8>{x}, DeviceAddress<b8>{bias},
      DeviceAddress<b8>{residual}, DeviceAddress<b8>{workspace}, alpha, beta);
  const LaunchGeometry geometry = Gemv{plan}.geometry();
  emulator::Launch launch;
  launch.kernel = "gemv";
  launch.grid = {geometry.grid.x, 1, 1};
  launch.block = {geometry.block.x, 1, 1};
  launch.cluster = {geometry.cluster.x, 1, 1};
  launch.dynamic_shared_bytes = geometry.dynamic_shared_bytes;
  launch.parameters = {block.data(), block.size()};
  emulator::Options options;
  options.checks = emulator::RuleSet::all();
  options.seed = seed;
  Outcome outcome;
  // Twice: the first launch leaves the tickets as it found them.
  for (int launch_number = 0; launch_number < (p.scaled ? 1 : 2); ++launch_number) {
    const emulator::Result result = emulator::run(program, launch, options);
    for (const emulator::RunFinding& finding : result.findings) {
      FAIL_CHECK(emulator::to_text(finding));
    }
    REQUIRE(result.status == emulator::Status::Ok);
    outcome.counters = result.counters;
  }
  if (workspace != 0) {
    Bytes tickets(plan.ticket_bytes());
    device.read(workspace, tickets);
    CHECK(tickets == Bytes(plan.ticket_bytes(), std::byte{0}));
  }
  Bytes all(y_bytes + 2 * kAround + off);
  device.read(around, all);
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(kAround + off);
  const auto end = begin + static_cast<std::ptrdiff_t>(y_bytes);
  CHECK(std::all_of(all.begin(), begin, [](std::byte b) { return b == kSentinel; }));
  CHECK(std::all_of(end, all.end(), [](std::byte b) { return b == kSentinel; }));
  outcome.y.assign(begin, end);
  return outcome;
}

GemvReference reference(const GemvProblem& p, const Operands& o, float alpha = 2, float beta = 3) {
  return gemv_reference(p, {o.a, o.x, o.y, o.bias, o.residual, alpha, beta});
}

// Integers come out exact; other data within the bound of the plan's roundings, and one more for a
// y of 16 bits.
void verify(const GemvPlan& plan, std::string_view target = "sm_90") {
  INFO(to_text(plan.problem) << ": " << to_text(plan) << " on " << target);
  const GemvProblem& p = plan.problem;
  {
    const Operands operands(p, true, 1);
    const GemvReference exact = reference(p, operands);
    const Outcome outcome = run(plan, operands, target);
    std::uint64_t wrong = 0;
    std::string first;
    for (std::uint32_t j = 0; j < p.n; ++j) {
      Bytes rounded(4);
      put(rounded, 0, p.y, static_cast<float>(exact.y[j]));
      const double got = get(outcome.y, j, p.y);
      if (got == get(rounded, 0, p.y)) continue;
      if (wrong++ == 0) {
        first = "y[" + std::to_string(j) + "] is " + std::to_string(got) + ", not " +
                std::to_string(exact.y[j]);
      }
    }
    INFO(first);
    CHECK(wrong == 0);
  }
  const Operands operands(p, false, test::seed());
  const GemvReference exact = reference(p, operands);
  const Outcome outcome = run(plan, operands, target, 7);
  const double last = p.y == ElementType::f32 ? 0 : p.y == ElementType::f16 ? 0x1p-11 : 0x1p-8;
  std::uint64_t wrong = 0;
  for (std::uint32_t j = 0; j < p.n; ++j) {
    const double bound = gemv_error_bound(exact.magnitude[j], plan.roundings());
    const double error = std::abs(get(outcome.y, j, p.y) - exact.y[j]);
    wrong += error <= bound + last * (std::abs(exact.y[j]) + bound) + 0x1p-24 ? 0 : 1;
  }
  CHECK(wrong == 0);
}

void clean(const GemvPlan& plan, std::string_view target = "sm_90") {
  const auto kernel = Gemv{plan}.build(ptx::target(target));
  std::string found;
  for (const Finding& finding : gates::run(kernel.module())) found += to_text(finding) + "\n";
  INFO(to_text(plan.problem) << ": " << to_text(plan));
  CHECK(found == "");
}

GemvPlan plan_of(const GemvProblem& p, std::uint32_t load_bytes, std::uint32_t warps_out,
                 std::uint32_t warps_k, std::uint32_t unroll, std::uint32_t blocks,
                 std::uint32_t rows = 1) {
  GemvPlan plan;
  plan.problem = p;
  plan.load_bytes = load_bytes;
  plan.warps_out = warps_out;
  plan.warps_k = warps_k;
  plan.unroll = unroll;
  plan.blocks = blocks;
  plan.rows = rows;
  return plan;
}

}  // namespace

TEST_CASE("gemv family: layout T, strips without a split") {
  verify(plan_of(problem(64, 256), 16, 2, 1, 8, 1));
  verify(plan_of(problem(63, 256), 16, 1, 1, 8, 2));
  verify(plan_of(problem(1, 1), 4, 1, 1, 8, 1));
  verify(plan_of(problem(0, 5), 4, 1, 1, 8, 1));
  verify(plan_of(problem(37, 300), 16, 1, 1, 4, 3));
  verify(plan_of(problem(37, 300), 8, 1, 1, 4, 1));
  verify(plan_of(problem(19, 77), 4, 2, 1, 5, 2));
  GemvProblem padded = problem(23, 298);
  padded.lda = 304;
  verify(plan_of(padded, 16, 1, 1, 4, 3));
}

TEST_CASE("gemv family: layout T, stacked warps") {
  verify(plan_of(problem(64, 256), 16, 1, 4, 4, 2));
  verify(plan_of(problem(61, 256), 16, 2, 4, 4, 1));
  verify(plan_of(problem(75, 130), 8, 1, 8, 4, 1));
  verify(plan_of(problem(200, 96), 4, 1, 3, 8, 2));
}

TEST_CASE("gemv family: layout T, splits of k") {
  verify(plan_of(problem(64, 256), 16, 1, 1, 4, 8));
  verify(plan_of(problem(61, 256), 16, 1, 1, 4, 32));
  verify(plan_of(problem(128, 140), 16, 1, 2, 4, 14));
  verify(plan_of(problem(333, 128), 16, 1, 1, 4, 33));
  verify(plan_of(problem(333, 130), 8, 1, 1, 4, 34));
}

TEST_CASE("gemv family: layout T, blocks in line") {
  for (const std::uint32_t blocks : {2u, 4u, 5u, 7u, 11u, 20u}) {
    verify(plan_of(problem(64, 384), 16, 1, 1, 8, blocks));
  }
  verify(plan_of(problem(70, 400), 16, 1, 2, 4, 7));
  verify(plan_of(problem(70, 400), 16, 1, 2, 4, 2));
}

TEST_CASE("gemv family: layout R, rows of warps") {
  verify(plan_of(problem(512, 8, GemvLayout::R), 16, 2, 1, 2, 4));
  verify(plan_of(problem(512, 8, GemvLayout::R), 16, 2, 1, 2, 1, 4));
  verify(plan_of(problem(500, 11, GemvLayout::R), 16, 2, 1, 2, 2, 3));
  verify(plan_of(problem(509, 7, GemvLayout::R), 4, 1, 1, 3, 7));
  verify(plan_of(problem(1, 1, GemvLayout::R), 4, 1, 1, 1, 1));
  verify(plan_of(problem(0, 3, GemvLayout::R), 16, 1, 1, 1, 1, 4));
  verify(plan_of(problem(130, 5, GemvLayout::R), 8, 1, 1, 1, 1, 5));
  verify(plan_of(problem(1000, 13, GemvLayout::R), 16, 2, 4, 1, 4, 2));
  verify(plan_of(problem(1003, 6, GemvLayout::R), 4, 1, 4, 2, 3, 2));
}

TEST_CASE("gemv family: layout R, splits of k and blocks in line") {
  verify(plan_of(problem(1024, 8, GemvLayout::R), 16, 2, 1, 1, 8, 2));
  verify(plan_of(problem(1024, 8, GemvLayout::R), 16, 1, 2, 1, 8, 2));
  for (const std::uint32_t blocks : {3u, 5u, 7u, 13u}) {
    verify(plan_of(problem(1000, 20, GemvLayout::R), 16, 2, 1, 2, blocks, 2));
  }
  verify(plan_of(problem(1000, 21, GemvLayout::R), 16, 2, 2, 1, 7, 2));
}

TEST_CASE("gemv family: 16-bit types") {
  for (const ElementType type : {ElementType::f16, ElementType::bf16}) {
    for (const bool same : {false, true}) {
      for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
        GemvProblem p = problem(272, 520, layout, type);
        if (same) p.x = p.y = type;
        if (layout == GemvLayout::R) p.n = 10;
        const std::uint32_t blocks = layout == GemvLayout::T ? 3 : 5;
        verify(plan_of(p, 16, 1, 1, 2, blocks, layout == GemvLayout::R ? 2 : 1));
        verify(plan_of(p, 8, 1, 2, 2, 4));
        verify(plan_of(p, 16, 1, 1, 2, blocks), "sm_75");
        p.k = 277;
        p.n += 1;
        verify(plan_of(p, 2, 1, 2, 2, 5));
        p.lda = layout == GemvLayout::T ? 528 : 280;
        verify(plan_of(p, 16, 1, 1, 2, 1));
      }
    }
  }
}

TEST_CASE("gemv family: epilogues and alignments") {
  for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
    for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
      GemvProblem p = problem(64, 130, layout, type);
      p.y = type;
      p.scaled = p.bias = p.residual = true;
      p.x_alignment = p.y_alignment = 4;
      verify(plan_of(p, 4, 1, 1, 4, 2));
      p.scaled = false;
      p.y_alignment = p.a_alignment = bytes(type);
      verify(plan_of(p, bytes(type), 1, 2, 2, 2));
      p.residual = false;
      verify(plan_of(p, bytes(type), 1, 1, 2, 1), "sm_75");
    }
  }
}

TEST_CASE("gemv family: with chunks the bits do not depend on the blocks") {
  for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
    const GemvProblem p =
        layout == GemvLayout::T ? problem(200, 300) : problem(3000, 9, GemvLayout::R);
    const Operands operands(p, false, 3);
    Bytes first;
    for (const std::uint32_t blocks : {1u, 2u, 3u, 5u, 9u}) {
      GemvPlan plan = plan_of(p, 16, 1, layout == GemvLayout::T ? 1 : 2, 4, blocks,
                              layout == GemvLayout::T ? 1 : 3);
      plan.chunk_steps = layout == GemvLayout::T ? 12 : 1;
      if (layout == GemvLayout::T && blocks == 2) verify(plan);
      const Outcome outcome = run(plan, operands, "sm_90", blocks);
      if (first.empty()) first = outcome.y;
      CHECK(outcome.y == first);
    }
  }
}

TEST_CASE("gemv family: path async") {
  const auto async = [](GemvPlan plan, std::uint32_t stages) {
    plan.path = GemvPath::Async;
    plan.stages = stages;
    return plan;
  };
  for (const std::uint32_t stages : {2u, 3u, 5u}) {
    verify(async(plan_of(problem(64, 256), 16, 2, 1, 4, 1), stages));
    verify(async(plan_of(problem(70, 300), 16, 1, 2, 4, 5), stages), "sm_80");
    verify(async(plan_of(problem(70, 301), 4, 1, 1, 8, 4), stages));
    verify(async(plan_of(problem(1000, 21, GemvLayout::R), 16, 2, 2, 1, 7, 2), stages));
    verify(async(plan_of(problem(1003, 6, GemvLayout::R), 4, 1, 4, 2, 3, 2), stages));
    GemvProblem padded = problem(123, 298, GemvLayout::T, ElementType::bf16);
    padded.lda = 304;
    verify(async(plan_of(padded, 16, 1, 1, 4, 3), stages));
    verify(
        async(plan_of(problem(3000, 9, GemvLayout::R, ElementType::f16), 16, 1, 1, 2, 4), stages));
    clean(async(plan_of(problem(70, 300), 16, 1, 2, 4, 5), stages));
    clean(
        async(plan_of(problem(3000, 9, GemvLayout::R, ElementType::f16), 16, 1, 1, 2, 4), stages));
  }
}

TEST_CASE("gemv family: path bulk") {
  const auto bulk = [](GemvPlan plan, std::uint32_t stages) {
    plan.path = GemvPath::Bulk;
    plan.stages = stages;
    return plan;
  };
  for (const std::uint32_t stages : {2u, 3u, 5u}) {
    verify(bulk(plan_of(problem(64, 256), 16, 2, 1, 4, 1), stages));
    verify(bulk(plan_of(problem(3, 256), 16, 2, 1, 4, 1), stages));
    verify(bulk(plan_of(problem(70, 300), 16, 1, 2, 4, 5), stages));
    verify(bulk(plan_of(problem(333, 128), 16, 1, 1, 4, 33), stages));
    verify(bulk(plan_of(problem(1000, 21, GemvLayout::R), 16, 2, 2, 1, 7, 2), stages));
    verify(bulk(plan_of(problem(1020, 6, GemvLayout::R), 16, 1, 4, 2, 2, 4), stages));
    GemvProblem padded = problem(123, 298, GemvLayout::T, ElementType::bf16);
    padded.lda = 304;
    verify(bulk(plan_of(padded, 16, 1, 1, 4, 3), stages));
    verify(
        bulk(plan_of(problem(3000, 9, GemvLayout::R, ElementType::f16), 16, 1, 1, 2, 4), stages));
    padded = problem(37, 259);
    padded.lda = 260;
    verify(bulk(plan_of(padded, 16, 1, 1, 4, 5), stages));
    padded = problem(21, 3);
    padded.lda = 8;
    verify(bulk(plan_of(padded, 16, 1, 1, 4, 3), stages));
    GemvPlan plan = bulk(plan_of(problem(70, 300), 16, 1, 2, 4, 5), stages);
    clean(plan);
    plan.programmatic = true;
    verify(plan);
    clean(plan);
    plan.chunk_steps = 2;
    verify(plan);
    clean(bulk(plan_of(problem(3000, 9, GemvLayout::R, ElementType::f16), 16, 1, 1, 2, 4), stages));
    plan = bulk(plan_of(problem(70, 300), 16, 1, 2, 4, 12), stages);
    plan.cluster = 2;
    verify(plan);
    clean(plan);
  }
}

TEST_CASE("gemv family: clusters") {
  const auto clustered = [](GemvPlan plan, std::uint32_t cluster) {
    plan.cluster = cluster;
    return plan;
  };
  for (const std::uint32_t size : {2u, 4u, 8u}) {
    verify(clustered(plan_of(problem(64, 256), 16, 1, 1, 4, 16), size));
    verify(clustered(plan_of(problem(70, 300), 16, 1, 2, 4, 24), size));
    verify(clustered(plan_of(problem(3000, 6, GemvLayout::R), 16, 1, 2, 1, 16, 4), size));
    verify(clustered(plan_of(problem(100, 512, GemvLayout::T, ElementType::bf16), 16, 1, 1, 4, 16),
                     size));
    clean(clustered(plan_of(problem(70, 300), 16, 1, 2, 4, 24), size));
    clean(clustered(plan_of(problem(3000, 6, GemvLayout::R), 16, 1, 2, 1, 16, 4), size));
  }
}

TEST_CASE("gemv family: programmatic launches") {
  for (const std::uint32_t blocks : {1u, 4u, 7u}) {
    GemvPlan plan = plan_of(problem(70, 300), 16, 1, 2, 4, blocks);
    plan.programmatic = true;
    verify(plan);
    clean(plan);
    plan = plan_of(problem(1000, 21, GemvLayout::R), 16, 2, 2, 1, blocks, 2);
    plan.programmatic = true;
    verify(plan);
    clean(plan);
  }
}

TEST_CASE("gemv family: rows further apart than 4 GiB") {
  // Memory that nothing writes takes no place on the host.
  for (const GemvPath path : {GemvPath::Direct, GemvPath::Async, GemvPath::Bulk}) {
    for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
      const bool t = layout == GemvLayout::T;
      GemvProblem p = problem(t ? 3 : 256, t ? 256 : 3, layout);
      p.lda = (std::uint64_t{1} << 30) + 4;
      GemvPlan plan = plan_of(p, 16, t ? 2 : 1, 1, t ? 3 : 1, 1, t ? 1 : 3);
      plan.path = path;
      plan.stages = path == GemvPath::Direct ? 0 : 2;
      INFO(to_text(p) << ": " << to_text(plan));
      const auto kernel = Gemv{plan}.build(ptx::target("sm_90"));
      emulator::Device device(emulator::default_gpu("sm_90"));
      emulator::Program program = emulator::Program::load(device, kernel.module());
      const std::uint64_t a = device.allocate(p.matrix_elements() * 4);
      std::vector<float> row(256), x(p.k, 1.0f), y(p.n);
      for (std::uint32_t r = 0; r < 3; ++r) {
        for (std::uint32_t c = 0; c < 256; ++c) row[c] = static_cast<float>(c * (r + 1));
        device.write(a + r * p.lda * 4, std::as_bytes(std::span(row)));
      }
      const std::uint64_t x_at = device.allocate(4 * p.k);
      const std::uint64_t y_at = device.allocate(4 * p.n);
      device.write(x_at, std::as_bytes(std::span(x)));
      const auto block = Gemv::KernelType::pack(
          DeviceAddress<b8>{y_at}, DeviceAddress<b8>{a}, DeviceAddress<b8>{x_at},
          DeviceAddress<b8>{0}, DeviceAddress<b8>{0}, DeviceAddress<b8>{0}, 1.0f, 0.0f);
      const LaunchGeometry geometry = Gemv{plan}.geometry();
      emulator::Launch launch;
      launch.kernel = "gemv";
      launch.block = {geometry.block.x, 1, 1};
      launch.dynamic_shared_bytes = geometry.dynamic_shared_bytes;
      launch.parameters = {block.data(), block.size()};
      const emulator::Result result = emulator::run(program, launch);
      REQUIRE(result.status == emulator::Status::Ok);
      device.read(y_at, std::as_writable_bytes(std::span(y)));
      std::uint32_t wrong = 0;
      for (std::uint32_t j = 0; j < p.n; ++j) {
        wrong += y[j] == (t ? 6.0f * static_cast<float>(j) : static_cast<float>(32640 * (j + 1)))
                     ? 0u
                     : 1u;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("gemv family: a plan's code passes the gates") {
  for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
    for (const std::uint32_t warps_k : {1u, 2u, 3u}) {
      for (const std::uint32_t blocks : {3u, 6u, 7u}) {
        const GemvProblem p =
            layout == GemvLayout::T ? problem(100, 300) : problem(3001, 9, GemvLayout::R);
        GemvPlan plan = plan_of(p, layout == GemvLayout::T ? 16 : 4, 1, warps_k, 2, blocks,
                                layout == GemvLayout::T ? 1 : 3);
        clean(plan);
        plan.chunk_steps = 2;
        clean(plan);
      }
    }
  }
}
