// tests/kernels/gemv_prediction_test.cpp - predictions against the emulator's counters
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>

#include "gemv_operands.hpp"
#include "ptxgen/emulator.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx.hpp"
#include "support/harness.hpp"

using namespace ptxgen;

namespace {

using emulator::LineCounters;

// One launch, and for each line of the PTX that accesses memory the parameter that it leads to.
struct Launched {
  emulator::Counters counters;
  std::map<std::uint32_t, std::string> operands;  // by line: "a", "x", "workspace"

  [[nodiscard]] std::string_view operand(const LineCounters& line) const {
    const auto found = operands.find(line.line);
    return found == operands.end() ? std::string_view() : found->second;
  }
};

// Operands of zeros, as far after a sector as the alignments say.
Launched launched(const GemvPlan& plan, const ptx::Gpu& gpu) {
  const GemvProblem& p = plan.problem;
  const std::string ptx = ptx::print(Gemv{plan}.build(ptx::target(gpu.target)).module());
  emulator::Device device(gpu);
  emulator::Program program = emulator::Program::load(device, ptx);
  const auto place = [&](std::uint64_t size, std::uint32_t alignment) {
    const std::uint64_t off = alignment >= 16 ? 0 : alignment;
    const std::uint64_t at = device.allocate(size + off + 1);
    device.fill(at, std::byte{0}, size + off + 1);
    return at + off;
  };
  const std::uint64_t outputs = std::uint64_t{p.n} * bytes(p.y);
  const std::uint64_t y = place(outputs, p.y_alignment);
  const std::uint64_t a = place(p.matrix_elements() * bytes(p.weights), p.a_alignment);
  const std::uint64_t x = place(std::uint64_t{p.k} * bytes(p.x), p.x_alignment);
  const std::uint64_t bias = place(outputs, p.y_alignment);
  const std::uint64_t residual = place(outputs, p.y_alignment);
  const std::uint64_t workspace = place(plan.workspace_bytes(), 16);
  const auto block = Gemv::KernelType::pack(
      DeviceAddress<b8>{y}, DeviceAddress<b8>{a}, DeviceAddress<b8>{x}, DeviceAddress<b8>{bias},
      DeviceAddress<b8>{residual}, DeviceAddress<b8>{workspace}, 1.0f, 0.0f);
  const LaunchGeometry geometry = Gemv{plan}.geometry();
  emulator::Launch launch;
  launch.kernel = Gemv::kName;
  launch.grid = {geometry.grid.x, 1, 1};
  launch.block = {geometry.block.x, 1, 1};
  launch.cluster = {plan.cluster, 1, 1};
  launch.dynamic_shared_bytes = geometry.dynamic_shared_bytes;
  launch.parameters = {block.data(), block.size()};
  emulator::Options options;
  options.checks = emulator::RuleSet::none();
  const emulator::Result result = emulator::run(program, launch, options);
  REQUIRE(result.status == emulator::Status::Ok);
  return {result.counters, test::operands_of_lines(ptx::parse(ptx))};
}

// The strips that several blocks share, by the partition as plan.hpp describes it.
struct Shares {
  std::uint64_t strips = 0, parts = 0;
};
Shares shares_by_hand(const GemvPlan& plan) {
  Shares shares;
  if (plan.chunk_steps != 0) {
    const std::uint64_t chunks = (plan.steps() + plan.chunk_steps - 1) / plan.chunk_steps;
    return chunks > 1 ? Shares{plan.strips(), plan.strips() * chunks} : shares;
  }
  for (std::uint64_t strip = 0; strip < plan.strips(); ++strip) {
    std::uint64_t contributors = 0;
    for (std::uint64_t block = 0; block < plan.blocks; ++block) {
      const std::uint64_t begin = std::max(plan.first_unit(block), strip * plan.steps());
      const std::uint64_t end = std::min(plan.first_unit(block + 1), (strip + 1) * plan.steps());
      if (begin < end) ++contributors;
    }
    contributors /= plan.cluster;  // one of them hands the cluster's sums in
    if (contributors > 1) shares = {shares.strips + 1, shares.parts + contributors};
  }
  return shares;
}

bool is_operand(std::string_view name) {
  const std::string_view names[] = {"y", "a", "x", "bias", "residual", "workspace"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

void compare(const GemvPlan& plan, const ptx::Gpu& gpu) {
  INFO(to_text(plan.problem) << ": " << to_text(plan));
  const GemvPrediction predicted = predict(plan, gpu);
  const Launched launch = launched(plan, gpu);
  const emulator::Counters& did = launch.counters;
  std::uint64_t read = did.bulk_load.bytes, written = 0;
  std::uint64_t requests = did.bulk_load.copies, sectors = did.bulk_load.sectors;
  std::uint64_t weights = did.bulk_load.bytes, partial_sums = 0;
  const LineCounters* first_part = nullptr;
  for (const LineCounters& line : did.lines) {
    const bool copies =
        line.opcode.starts_with("cp.async.ca") || line.opcode.starts_with("cp.async.cg");
    const bool loads = copies || line.opcode.starts_with("ld.global");
    (loads ? read : written) += line.memory.bytes;
    const std::string_view operand = launch.operand(line);
    INFO("line " << line.line << ": " << line.opcode << " of " << operand);
    CHECK((!loads || is_operand(operand)));
    if (loads && operand == "a") {
      requests += line.memory.requests;
      sectors += line.memory.sectors;
      weights += line.memory.bytes;
    } else if (loads && operand == "workspace") {
      partial_sums += line.memory.bytes;
      if (first_part == nullptr) first_part = &line;
    }
  }
  CHECK(predicted.bytes_read == read);
  CHECK(predicted.bytes_written == written);
  CHECK(predicted.parts == did.atomics);  // a ticket for each
  const GemvProblem& p = plan.problem;
  CHECK(weights == std::uint64_t{p.k} * p.n * bytes(p.weights));
  CHECK(predicted.weight_requests == requests);
  CHECK(predicted.weight_sectors == sectors);
  CHECK(predicted.parts * plan.strip_outputs() * 4 == partial_sums);
  const Shares shares = shares_by_hand(plan);
  CHECK(predicted.parts == shares.parts);
  CHECK(predicted.reductions == shares.strips);
  // Where all parts of a strip are on their way at once, each reduction runs that code once.
  if (first_part != nullptr && plan.max_parts() <= 4) {
    CHECK(predicted.reductions * plan.warps_out == first_part->memory.requests);
  }
  CHECK(predicted.blocks_per_sm == did.blocks_per_sm);
  CHECK(predicted.waves == did.waves);
  CHECK(predicted.workspace_bytes == plan.workspace_bytes());
}

const ptx::Gpu& gpu_for(std::size_t i) {
  static const std::string_view names[] = {"rtx4090", "h200", "t4", "rtx5090"};
  return *ptx::find_gpu(names[i % 4]);
}

}  // namespace

TEST_CASE("predictions are what the emulator counts: shapes, types, alignments, partitions") {
  std::mt19937_64 random(test::seed());
  const auto up_to = [&](std::uint32_t largest) {
    return static_cast<std::uint32_t>(random() % largest) + 1;
  };
  const auto one_of = [&](auto... values) {
    const std::uint32_t list[] = {static_cast<std::uint32_t>(values)...};
    return list[random() % std::size(list)];
  };
  constexpr ElementType kTypes[] = {ElementType::f32, ElementType::f16, ElementType::bf16};
  const int plans = test::count(240, 3000);
  std::array<int, 3> of_path{};
  for (int i = 0; i < plans; ++i) {
    GemvPlan plan;
    GemvProblem& p = plan.problem;
    p.layout = i % 2 == 0 ? GemvLayout::T : GemvLayout::R;
    p.weights = kTypes[i / 2 % 3];
    // One after another: the order in which a compiler evaluates arguments is its own.
    const auto extents = [&] {
      const std::uint32_t large = up_to(700);
      const std::uint32_t medium = up_to(300);
      return std::array{up_to(32), medium, large};
    };
    const auto [small_k, medium_k, large_k] = extents();
    p.k = one_of(0, 1, small_k, medium_k, large_k, 256, 512, 67);
    const auto [small_n, medium_n, large_n] = extents();
    p.n = one_of(1, small_n, medium_n, large_n, 256, 512, 129);
    p.x = random() % 2 == 0 ? ElementType::f32 : p.weights;
    p.y = random() % 2 == 0 ? ElementType::f32 : p.weights;
    const std::uint32_t row = p.layout == GemvLayout::T ? p.n : p.k;
    if (random() % 3 == 0) p.lda = row + up_to(19);
    const auto alignment = [&](ElementType type) {
      return std::max(bytes(type), one_of(16, 16, 16, 8, 4, 2));
    };
    p.a_alignment = alignment(p.weights);
    p.x_alignment = alignment(p.x);
    p.y_alignment = alignment(p.y);
    p.scaled = random() % 4 == 0;
    p.bias = random() % 4 == 0;
    p.residual = random() % 4 == 0;
    const ptx::Gpu& gpu = gpu_for(static_cast<std::size_t>(i / 2));
    const std::uint16_t sm = ptx::target(gpu.target).sm;
    plan.load_bytes = std::max(bytes(p.weights), widest_load(p) / one_of(1, 1, 1, 2, 4));
    plan.warps_out = one_of(1, 1, 2, 4, 3);
    plan.warps_k = one_of(1, 1, 2, 4, 3);
    plan.unroll = one_of(1, 2, 4, 8, 3);
    if (p.layout == GemvLayout::R) plan.rows = one_of(1, 2, 4, 3);
    if (i % 7 == 0) plan.chunk_steps = up_to(3);
    plan.programmatic = sm >= 90 && random() % 2 == 0;
    const bool bulk = sm >= 90 && plan.load_bytes == 16;
    if (i % 5 < 2 && (bulk || (sm >= 80 && plan.load_bytes >= 4))) {
      plan.path = bulk ? GemvPath::Bulk : GemvPath::Async;
      plan.stages = one_of(2, 3, 4);
      plan.unroll = one_of(1, 2, 3);
    }
    const std::uint64_t steps = plan.chunk_steps == 0
                                    ? plan.steps()
                                    : (plan.steps() + plan.chunk_steps - 1) / plan.chunk_steps;
    const std::uint64_t largest = std::min<std::uint64_t>(plan.strips() * steps, 60);
    const std::uint64_t split = std::min<std::uint64_t>(steps, up_to(8));
    plan.blocks =
        static_cast<std::uint32_t>(i % 3 == 0   ? std::min(largest, plan.strips())
                                   : i % 3 == 1 ? plan.strips() * split
                                                : up_to(static_cast<std::uint32_t>(largest)));
    const std::uint64_t of_strip =
        plan.blocks % plan.strips() == 0 ? plan.blocks / plan.strips() : 0;
    if (sm >= 90 && plan.chunk_steps == 0 && of_strip != 0 && of_strip % 2 == 0) {
      plan.cluster = of_strip % 4 == 0 && random() % 2 == 0 ? 4 : 2;
    }
    compare(plan, gpu);
    ++of_path[static_cast<std::size_t>(plan.path)];
  }
  for (const int count : of_path) CHECK(count >= plans / 100);
}

TEST_CASE("the planner's own choices do what it says of them") {
  struct Size {
    std::uint32_t k, n;
  };
  for (const Size size : {Size{256, 512}, Size{384, 130}, Size{1024, 96}, Size{100, 1000}}) {
    for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
      for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
        for (const std::string_view gpu : {"rtx4090", "h200"}) {
          GemvProblem p;
          p.k = size.k;
          p.n = size.n;
          p.layout = layout;
          p.weights = type;
          const auto ranking = rank_gemv_plans(p, *ptx::find_gpu(gpu));
          for (std::size_t i = 0; i < std::min<std::size_t>(3, ranking.size()); ++i) {
            CHECK(ranking[i].prediction.bytes_read ==
                  predict(ranking[i].plan, *ptx::find_gpu(gpu)).bytes_read);
            compare(ranking[i].plan, *ptx::find_gpu(gpu));
          }
        }
      }
    }
  }
}

TEST_CASE("aligned weights come in whole sectors, 16 of them for a load of 128 bits") {
  GemvPlan plan;
  plan.problem.k = 512;
  plan.problem.n = 512;
  for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
    plan.problem.layout = layout;
    plan.blocks = static_cast<std::uint32_t>(plan.strips());
    const GemvPrediction result = predict(plan, *ptx::find_gpu("h200"));
    CHECK(result.weight_sectors == 16 * result.weight_requests);
    CHECK(result.weight_sectors * 32 == 512 * 512 * 4);
  }
}
