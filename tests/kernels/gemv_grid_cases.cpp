// tests/kernels/gemv_grid_cases.cpp - the grid: problems, plans and targets that go together
#include "gemv_grid_cases.hpp"

#include <algorithm>
#include <bit>

#include "ptx/dice.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::test {
namespace {

// One, even, powers of two, their neighbours, primes, and what no tile divides.
constexpr std::uint32_t kExtents[] = {1,    2,    3,    5,    7,    8,    12,   13,  16,  31,  32,
                                      33,   37,   63,   64,   65,   96,   97,   100, 127, 128, 129,
                                      131,  200,  251,  255,  256,  257,  384,  509, 512, 521, 1000,
                                      1021, 1024, 1031, 1536, 2048, 2053, 4093, 4096};
constexpr std::uint32_t kMaxWeights = 24'000;

constexpr const char* kTargets[] = {"sm_90", "sm_75",  "sm_80",   "sm_89",  "sm_90a",
                                    "sm_86", "sm_100", "sm_103a", "sm_120", "sm_121f"};
constexpr GemvPath kPaths[] = {GemvPath::Direct, GemvPath::Async, GemvPath::Bulk};
constexpr ElementType kTypes[] = {ElementType::f32, ElementType::f16, ElementType::bf16};

std::uint32_t alignment_of(std::uint32_t offset, std::uint32_t element) {
  return offset == 0 ? 256 : 1u << std::countr_zero(offset * element);
}

/// Alignments as the offsets have them; now and then the problem says less.
void align(GemvCase& point, Dice& dice) {
  GemvProblem& problem = point.plan.problem;
  const auto alignment = [&](std::uint32_t offset, std::uint32_t element) {
    const std::uint32_t real = alignment_of(offset, element);
    return dice.chance(15) ? std::max(element, std::min(real, 8u) / 2) : real;
  };
  problem.a_alignment = alignment(point.a_offset, bytes(problem.weights));
  problem.x_alignment = alignment(point.x_offset, bytes(problem.x));
  problem.y_alignment = alignment(point.y_offset, bytes(problem.y));
}

void draw_shape(GemvProblem& problem, Dice& dice) {
  do {
    problem.k = dice.chance(1) ? 0 : dice.pick(kExtents);
    problem.n = dice.pick(kExtents);
  } while (std::uint64_t{problem.k} * problem.n > kMaxWeights);
  const std::uint32_t row = problem.layout == GemvLayout::T ? problem.n : problem.k;
  problem.lda = 0;
  if (dice.chance(30)) problem.lda = row + dice.between(1, 9);
  if (dice.chance(10)) problem.lda = (row + 63) / 32 * 32;
}

void draw_problem(GemvCase& point, std::size_t number, Dice& dice) {
  GemvProblem& problem = point.plan.problem;
  problem.layout = number % 2 == 0 ? GemvLayout::T : GemvLayout::R;
  problem.weights = kTypes[number / 2 % 3];
  problem.x = dice.chance(50) ? problem.weights : ElementType::f32;
  problem.y = dice.chance(50) ? problem.weights : ElementType::f32;
  const std::size_t epilogue = number / 6 % 8;
  problem.scaled = (epilogue & 1u) != 0;
  problem.bias = (epilogue & 2u) != 0;
  problem.residual = (epilogue & 4u) != 0;
  point.residual_is_y = problem.residual && dice.chance(30);
  draw_shape(problem, dice);
  point.a_offset = dice.chance(40) ? dice.between(1, 3) : 0;
  point.x_offset = dice.chance(30) ? dice.between(1, 3) : 0;
  point.y_offset = dice.chance(30) ? dice.between(1, 3) : 0;
  align(point, dice);
}

std::uint32_t draw_blocks(const GemvPlan& plan, Dice& dice) {
  const std::uint64_t units = plan.units();
  const std::uint64_t strips = plan.strips();
  constexpr std::uint32_t kPersistent[] = {132, 128, 7};
  std::uint64_t blocks = strips;
  switch (dice.below(5)) {
    case 0:
      break;
    case 1:
      blocks = dice.pick(kPersistent);
      break;
    case 2:
      blocks = dice.between(1, 64);
      break;
    case 3:
      blocks = std::min<std::uint64_t>(units, 160);
      break;
    default:
      blocks = strips * dice.between(2, 9);
  }
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(blocks, 1, std::min<std::uint64_t>(units, 200)));
}

void draw_plan(GemvPlan& plan, GemvPath path, Dice& dice) {
  constexpr std::uint32_t kFew[] = {1, 2, 4, 8};
  constexpr std::uint32_t kAny[] = {1, 2, 3, 4, 5, 8};
  plan.path = path;
  plan.load_bytes = std::max(bytes(plan.problem.weights),
                             widest_load(plan.problem) >> (dice.chance(25) ? dice.below(3) : 0));
  plan.warps_out = dice.pick(kFew);
  plan.warps_k = dice.chance(50) ? 1 : dice.pick(kFew);
  if (dice.chance(10)) plan.warps_k = 3;
  plan.rows = plan.problem.layout == GemvLayout::R ? dice.pick(kAny) : 1;
  plan.unroll = dice.pick(kAny);
  plan.stages = path == GemvPath::Direct ? 0 : dice.between(2, 4);
  plan.programmatic = dice.chance(20);
  plan.streaming = dice.chance(70);
  plan.blocks_per_sm = dice.chance(70) ? 1 : 2;
  plan.cluster = 1;
  plan.blocks = 1;
  plan.chunk_steps = dice.chance(25) ? dice.between(1, 4) : 0;
  if (dice.chance(25)) {
    plan.cluster = 1u << dice.between(1, 3);
    plan.blocks = static_cast<std::uint32_t>(plan.strips() * plan.cluster * dice.between(1, 4));
  } else {
    plan.blocks = draw_blocks(plan, dice);
  }
}

GemvCase draw(std::size_t number) {
  Dice dice(0x9e37 + number);
  // Half of the points have direct loads; the others as soon as there is more.
  const GemvPath wanted = kPaths[number / 2 % 4 < 2 ? 0 : number / 2 % 4 - 1];
  for (unsigned attempt = 0;; ++attempt) {
    GemvCase point;
    point.seed = number + 1;
    draw_problem(point, number, dice);
    draw_plan(point.plan, attempt < 60 ? wanted : GemvPath::Direct, dice);
    const std::size_t first = dice.below(std::size(kTargets));
    for (std::size_t i = 0; i < std::size(kTargets); ++i) {
      point.target = kTargets[(first + i) % std::size(kTargets)];
      if (admitted(point.plan, point.target)) return point;
    }
    if (attempt > 2000) throw Error(Stage::Build, "bad-grid", "no plan was admitted");
  }
}

/// Point `number` below 128: split count number / 2 + 1, k of at least that many steps.
GemvCase split(std::size_t number) {
  Dice dice(0x5151 + number);
  GemvCase point;
  point.seed = 10'000 + number;
  point.target = kTargets[number / 2 % std::size(kTargets)];
  GemvPlan& plan = point.plan;
  plan.problem.layout = number % 2 == 0 ? GemvLayout::T : GemvLayout::R;
  plan.problem.weights = kTypes[number / 2 % 3];
  plan.problem.y = dice.chance(30) ? plan.problem.weights : ElementType::f32;
  if (point.target == "sm_75") plan.problem.weights = plan.problem.y = ElementType::f32;
  const auto count = static_cast<std::uint32_t>(number / 2 + 1);
  const bool columns = plan.problem.layout == GemvLayout::T;
  plan.warps_out = 1u << dice.below(2);
  plan.unroll = columns ? dice.between(1, 4) : 1;
  plan.load_bytes = columns ? 16 : 4;
  plan.rows = columns ? 1 : dice.between(1, 4);
  plan.problem.n = columns ? dice.between(100, 140) / 8 * 8 : dice.between(1, 9);
  plan.problem.k = static_cast<std::uint32_t>(plan.step_elements()) * count;
  if (columns) plan.problem.k -= dice.below(plan.unroll);
  plan.problem.residual = dice.chance(50);
  plan.blocks = static_cast<std::uint32_t>(plan.strips() * count);
  return point;
}

/// Point `number` from 128 on: as many blocks as persistent kernels have, over strips that they do
/// not divide.
GemvCase linear(std::size_t number) {
  constexpr std::uint32_t kPersistent[] = {132, 128, 7};
  Dice dice(0x7117 + number);
  GemvCase point;
  point.seed = 20'000 + number;
  point.target = "sm_90";
  GemvPlan& plan = point.plan;
  plan.problem.layout = number % 2 == 0 ? GemvLayout::T : GemvLayout::R;
  plan.problem.weights = kTypes[number / 2 % 3];
  plan.blocks = kPersistent[number / 6 % 3];
  const bool columns = plan.problem.layout == GemvLayout::T;
  plan.problem.n = columns ? dice.between(1, 700) : dice.between(1, 11);
  plan.problem.k = columns ? dice.between(135, 160) : dice.between(4300, 4500);
  plan.problem.lda = dice.chance(50) ? 0 : columns ? 704 : 4512;
  plan.problem.bias = dice.chance(50);
  plan.warps_out = 1;
  plan.unroll = 1;
  plan.rows = columns ? 1 : dice.between(1, 3);
  plan.load_bytes = columns ? widest_load(plan.problem) : bytes(plan.problem.weights);
  plan.chunk_steps = number % 4 < 2 ? 0 : dice.between(1, 2);
  while (!admitted(plan, point.target)) {
    // Fewer steps than blocks: chunks are given up first, then the wide loads.
    if (plan.chunk_steps != 0) {
      plan.chunk_steps = 0;
    } else {
      ++plan.problem.k;
      plan.problem.lda = 0;
      plan.load_bytes = std::min(plan.load_bytes, widest_load(plan.problem));
    }
  }
  return point;
}

}  // namespace

std::string to_text(const GemvCase& point) {
  const GemvProblem& problem = point.plan.problem;
  const GemvPlan& plan = point.plan;
  std::string text = to_text(problem) + " | " + to_text(plan) + " | " + point.target;
  text += " | x " + std::string(to_string(problem.x)) + " y " + std::string(to_string(problem.y));
  text += ", lda " + std::to_string(problem.lda) + ", alignment " +
          std::to_string(problem.a_alignment) + " " + std::to_string(problem.x_alignment) + " " +
          std::to_string(problem.y_alignment);
  text += ", offsets " + std::to_string(point.a_offset) + " " + std::to_string(point.x_offset) +
          " " + std::to_string(point.y_offset);
  text += std::string(problem.scaled ? ", scaled" : "") + (problem.bias ? ", bias" : "") +
          (problem.residual ? point.residual_is_y ? ", residual y" : ", residual" : "");
  text += " | " + std::to_string(plan.load_bytes) + " B, warps " + std::to_string(plan.warps_out) +
          "x" + std::to_string(plan.warps_k) + ", rows " + std::to_string(plan.rows) + ", unroll " +
          std::to_string(plan.unroll) + ", blocks " + std::to_string(plan.blocks) + ", chunk " +
          std::to_string(plan.chunk_steps) + ", cluster " + std::to_string(plan.cluster) +
          ", stages " + std::to_string(plan.stages) + (plan.programmatic ? ", programmatic" : "") +
          (plan.streaming ? ", streaming" : "") + ", per sm " + std::to_string(plan.blocks_per_sm) +
          ", seed " + std::to_string(point.seed);
  return text;
}

bool admitted(const GemvPlan& plan, std::string_view target) {
  try {
    check(plan, ptx::target(target));
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<GemvCase> gemv_grid(std::size_t count) {
  std::vector<GemvCase> grid;
  grid.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    grid.push_back(i < 128 ? split(i) : i < 164 ? linear(i) : draw(i));
  }
  return grid;
}

std::vector<GemvCase> gemv_aligned_cases() {
  std::vector<GemvCase> cases;
  for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
    for (const ElementType type : kTypes) {
      for (const GemvPath path : kPaths) {
        for (const std::uint32_t cluster : {1u, 4u}) {
          for (const std::uint32_t split : {1u, 4u}) {
            GemvCase point;
            point.target = "sm_90";
            GemvPlan& plan = point.plan;
            plan.problem.layout = layout;
            plan.problem.weights = type;
            plan.problem.x = split == 4 ? type : ElementType::f32;
            plan.path = path;
            plan.stages = path == GemvPath::Direct ? 0 : 3;
            plan.warps_out = 2;
            plan.warps_k = split;
            plan.rows = layout == GemvLayout::R ? 2 : 1;
            plan.unroll = 4;
            plan.cluster = cluster;
            const bool columns = layout == GemvLayout::T;
            plan.problem.n = columns ? 2 * plan.strip_outputs() : 12;
            plan.problem.k = plan.step_elements() * cluster * split * (split == 1 ? 2 : 1);
            plan.blocks = static_cast<std::uint32_t>(plan.strips() * cluster * split);
            if (admitted(plan, point.target)) cases.push_back(point);
          }
        }
      }
    }
  }
  return cases;
}

}  // namespace ptxgen::test
