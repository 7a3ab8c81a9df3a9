// tests/kernels/gemv_registers_test.cpp - predicted registers against the assembler's report
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "ptx/occupancy.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "support/harness.hpp"

using namespace ptxgen;

namespace {

struct Part {
  std::string_view gpu, target;
};
constexpr Part kParts[] = {{"t4", "sm_75"},    {"a100", "sm_80"},   {"rtx4090", "sm_89"},
                           {"h200", "sm_90a"}, {"b200", "sm_100a"}, {"rtx5090", "sm_120a"}};

// The launch with what the assembler says that a block takes: all that the plan has resident is,
// and blocks come in no more waves than predicted; in fewer where the assembler needs fewer
// registers.
void check_waves(const GemvCandidate& choice, const ptx::Gpu& gpu, const Assembly& result) {
  const LaunchGeometry launch = Gemv{choice.plan}.geometry();
  ptx::BlockNeeds needs;
  needs.threads = launch.block.x * launch.block.y * launch.block.z;
  needs.registers = result.registers;
  needs.static_shared = result.shared;
  needs.dynamic_shared = needs.max_dynamic_shared = launch.dynamic_shared_bytes;
  const double resident = ptx::blocks_per_sm(gpu, needs);
  const double waves = static_cast<double>(launch.grid.x) / (resident * gpu.sms);
  INFO(resident << " blocks are resident, " << choice.prediction.blocks_per_sm << " predicted");
  CHECK(resident >= choice.prediction.blocks_per_sm);
  CHECK(std::ceil(waves) <= std::ceil(choice.prediction.waves));
}

void check_first_choice(const Assembler& assembler, const GemvProblem& problem, const Part& part,
                        double& max_above) {
  const ptx::Gpu& gpu = *ptx::find_gpu(part.gpu);
  CHECK(gpu.target == part.target);
  const GemvCandidate best = rank_gemv_plans(problem, gpu).front();
  INFO(to_text(problem) << " on " << part.gpu << ": " << to_text(best.plan));
  AssembleOptions options;
  options.target = part.target;
  const Assembly result = assembler.assemble(
      ptx::print(Gemv{best.plan}.build(ptx::target(part.target)).module()), options);
  CHECK(result.spill_stores + result.spill_loads == 0);
  check_waves(best, gpu, result);
  CHECK(result.registers <= best.prediction.registers);
  // They are given out in portions of 8: up to two of these, or a quarter of all.
  const std::uint32_t taken = (result.registers + 7) / 8 * 8;
  INFO(best.prediction.registers << " predicted, " << result.registers << " reported");
  // Before sm_90 the assembler takes 60 to 150 for lanes that exchange elements of x.
  const bool exchanges = problem.layout == GemvLayout::R && problem.weights != ElementType::f32 &&
                         ptx::target(part.target).sm < 90;
  if (exchanges) return;
  CHECK(best.prediction.registers <= std::max(taken + 16, taken * 5 / 4));
  max_above = std::max(max_above, best.prediction.registers / static_cast<double>(taken) - 1);
}

}  // namespace

TEST_CASE("first choices need no more registers than predicted, little fewer, and spill nothing") {
  const Assembler assembler(Settings::from_environment());
  if (!assembler.available()) {
    return test::skip("no assembler: install the CUDA 13 toolkit's nvJitLink or ptxas");
  }
  double max_above = 0;
  for (const Part& part : kParts) {
    for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
      for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
        GemvProblem problem;
        problem.layout = layout;
        problem.weights = type;
        problem.k = 4096;
        problem.n = type == ElementType::f32 ? 4096 : 11008;
        check_first_choice(assembler, problem, part, max_above);
      }
    }
  }
  WARN("predicted at most " << 100 * max_above << " % above the assembler's figure");
}

TEST_CASE("the assembler keeps to the registers that .minnctapersm leaves a thread") {
  const Assembler assembler(Settings::from_environment());
  if (!assembler.available()) {
    return test::skip("no assembler: install the CUDA 13 toolkit's nvJitLink or ptxas");
  }
  struct Shape {
    std::uint32_t threads, blocks;
  };
  // Whole warps, in quarters of the register file: mostly fewer than an equal share of all of it.
  for (const Shape shape :
       {Shape{96, 7}, {96, 6}, {96, 5}, {128, 5}, {160, 3}, {64, 9}, {33, 10}, {224, 3}}) {
    std::string text =
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 a)\n.reqntid " +
        std::to_string(shape.threads) + ", 1, 1\n.minnctapersm " + std::to_string(shape.blocks) +
        "\n{\n.reg .f32 %f<160>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [a];\n";
    // More values at once than the assembler may keep.
    const auto access = [&](int i, bool load) {
      const std::string place = "[%rd1+" + std::to_string(4 * i) + "]",
                        value = "%f" + std::to_string(i);
      text += load ? "ld.volatile.global.f32 " + value + ", " + place + ";\n"
                   : "st.volatile.global.f32 " + place + ", " + value + ";\n";
    };
    for (int i = 0; i < 160; ++i) access(i, true);
    for (int i = 160; i-- > 0;) access(i, false);
    text += "ret;\n}\n";
    AssembleOptions options;
    options.target = "sm_90";
    const ptx::Module module = ptx::parse(text);
    INFO(shape.blocks << " blocks of " << shape.threads << " threads");
    CHECK(assembler.assemble(text, options).registers ==
          ptx::max_registers(*ptx::find_gpu("h200"), module.functions[0]));
  }
}
