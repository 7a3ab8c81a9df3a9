// tests/kernels/sass_test.cpp - plans and kernels held to their machine code
#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>
#include <iterator>
#include <span>

#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/runtime/assemble/disassembler.hpp"
#include "support/format.hpp"
#include "support/harness.hpp"

using namespace ptxgen;

namespace {

struct Tools {
  Settings settings = Settings::from_environment();
  Assembler assembler{settings};
  Disassembler disassembler{settings};

  [[nodiscard]] const char* missing() const {
    if (!assembler.available()) return "no assembler: install the CUDA 13 nvJitLink or ptxas";
    if (!disassembler.available()) {
      return "no nvdisasm: scripts/setup installs PyPI's nvidia-cuda-nvdisasm";
    }
    return nullptr;
  }
  // Of the kernel itself: nvJitLink leaves a helper for shuffles that no instruction calls.
  [[nodiscard]] SassSummary summary(const ptx::Module& module, std::string_view kernel) const {
    AssembleOptions options;
    options.target = module.target;
    const Assembly assembly = assembler.assemble(ptx::print(module), options);
    const std::vector<SassFunction> functions = disassembler.disassemble(assembly.cubin);
    const auto entry = std::find_if(functions.begin(), functions.end(),
                                    [&](const SassFunction& f) { return f.name == kernel; });
    REQUIRE(entry != functions.end());
    return summary_of(*entry);
  }
};

// sm_80, sm_89, sm_90a and sm_100a.
constexpr std::string_view kGpus[] = {"a100", "rtx4090", "h200", "b200"};

struct Shape {
  std::uint32_t k, n;
};
// The fused GEMVs of a layer of Llama-3-8B.
constexpr Shape kShapes[] = {{4096, 6144}, {4096, 4096}, {4096, 28672}, {14336, 4096}};

std::vector<GemvProblem> problems() {
  std::vector<GemvProblem> all;
  const auto shapes = static_cast<std::size_t>(test::count(1, std::size(kShapes)));
  for (const Shape& shape : std::span(kShapes).first(shapes)) {
    for (const GemvLayout layout : {GemvLayout::R, GemvLayout::T}) {
      for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
        GemvProblem problem;
        problem.k = shape.k;
        problem.n = shape.n;
        problem.layout = layout;
        problem.weights = type;
        all.push_back(problem);
      }
    }
  }
  return all;
}

// Instructions of a warp for each weight of a lane in the loop.
double instructions_per_weight(const SassLoop& loop, const GemvPlan& plan) {
  const double weights =
      plan.unroll * plan.rows * static_cast<double>(plan.load_bytes) / bytes(plan.problem.weights);
  return loop.instructions / weights;
}

void check_direct(const GemvPlan& plan, const SassSummary& summary) {
  CHECK(summary.streamed.loads == plan.unroll * plan.rows);
  const SassLoop* const loop = summary.main_loop();
  if (loop == nullptr || loop->streamed.loads == 0) return;  // one step, or a loop without weights
  const bool narrow = plan.problem.weights != ElementType::f32;
  CHECK(instructions_per_weight(*loop, plan) <= (narrow ? 6.0 : 4.5));
}

}  // namespace

TEST_CASE("first choices: the loads of the plan are together in the machine code, no spills") {
  const Tools tools;
  if (const char* const missing = tools.missing()) return test::skip(missing);
  std::size_t pairs = 0;
  std::size_t number = 0;
  for (const std::string_view name : kGpus) {
    const ptx::Gpu& gpu = *ptx::find_gpu(name);
    double largest = 0;
    for (const GemvProblem& problem : problems()) {
      // Every day a fifth of them: each GPU and each type has some.
      if (!test::full() && number++ % 5 != 0) continue;
      const GemvPlan plan = plan_gemv(problem, gpu);
      INFO(name << ": " << to_text(problem) << ": " << to_text(plan));
      const SassSummary summary =
          tools.summary(Gemv{plan}.build(ptx::target(gpu.target)).module(), Gemv::kName);
      CHECK(summary.spills == 0);
      if (plan.path == GemvPath::Direct) check_direct(plan, summary);
      if (plan.path == GemvPath::Async) CHECK(summary.main_loop()->copied_bytes != 0);
      if (const SassLoop* const loop = summary.main_loop()) {
        largest = std::max(largest, instructions_per_weight(*loop, plan));
      }
      ++pairs;
    }
    std::cout << format_text("{}: up to {:.2f} instructions per weight\n", gpu.target, largest);
  }
  CHECK(pairs >= std::size(kGpus) * problems().size() / (test::full() ? 1 : 5));
}

TEST_CASE("kernels of the catalog: what the PTX has in flight, the machine code has, no spills") {
  const Tools tools;
  if (const char* const missing = tools.missing()) return test::skip(missing);
  std::size_t kernels = 0;
  std::size_t pairs = 0;
  for (const KernelDescription& kernel : catalog()) {
    if (kernel.family != nullptr) continue;
    // Every day a third of the kernels, sm_80 for one and sm_100a for the next.
    if (!test::takes(kernels++, 3, 3)) continue;
    const std::string_view everyday = pairs % 2 == 0 ? "a100" : "b200";
    for (const std::string_view name : kGpus) {
      if (!test::full() && name != everyday) continue;
      INFO(kernel.name << " on " << name);
      const ptx::Gpu& gpu = *ptx::find_gpu(name);
      if (!kernel.serves(ptx::target(gpu.target))) continue;
      const std::vector<std::uint64_t> values = kernel.default_values();
      const SassSummary summary =
          tools.summary(kernel.build(values, ptx::target(gpu.target)), kernel.name);
      const LaunchWork work = launch_work(kernel, values, gpu);
      // A kernel without plain loads has asynchronous copies in their place.
      const SassLoop* const loop = summary.main_loop();
      const std::uint32_t copied = loop != nullptr ? loop->copied_bytes : 0;
      CHECK(summary.spills == 0);
      CHECK(std::max(summary.in_flight.bytes, copied) >=
            static_cast<std::uint32_t>(work.bytes_in_flight));
      ++pairs;
    }
  }
  CHECK(pairs >= (test::full() ? 16 * std::size(kGpus) : 8));
}
