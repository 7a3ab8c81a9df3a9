// tests/kernels/block_gates_test.cpp - GEMVs with weights in blocks pass gates without a warning
#include <catch2/catch.hpp>

#include <cstdio>
#include <string>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

constexpr ElementType kTypes[] = {ElementType::q4_0, ElementType::q4_1, ElementType::q5_0,
                                  ElementType::q5_1, ElementType::q8_0, ElementType::q4_k,
                                  ElementType::q5_k, ElementType::q6_k};
constexpr ElementType kXTypes[] = {ElementType::f32, ElementType::f16, ElementType::q8_1};
// Of models, and with a step, a window and a block left over.
constexpr std::uint32_t kLengths[] = {256,  512,  576,  640,   1536,  2048, 4096,
                                      4352, 8192, 8960, 11008, 14336, 16384};
constexpr std::uint32_t kRows[] = {1, 2, 4, 8, 64};

/// Errors and warnings of all gates and of the analyzer.
std::string complaints(const ptx::Module& module) {
  std::string text;
  gates::GateRun run(module, {.origin = gates::CodeOrigin::Built});
  for (const gates::GateInfo& gate : gates::all_gates()) {
    if (gate.run == gates::performance_notes) continue;  // notes alone
    for (const Finding& finding : run.run(gate)) {
      if (finding.severity != Severity::Note) text += to_text(finding) + "\n";
    }
  }
  return text;
}

struct Shape {
  ElementType type, x;
  std::uint32_t k;
};

/// Every one in a full run; otherwise a part, in which each type, x and length occurs.
std::vector<Shape> shapes() {
  std::vector<Shape> all;
  std::size_t number = 0;
  const std::size_t each = full() ? 1 : 11;
  for (const ElementType type : kTypes) {
    for (const ElementType x : kXTypes) {
      for (const std::uint32_t k : kLengths) {
        if (k % info(type).block_values != 0) continue;
        if (number++ % each == 0) all.push_back({type, x, k});
      }
    }
  }
  return all;
}

std::string to_text(const Shape& shape) {
  return std::string(info(shape.type).name) + " x " + std::string(info(shape.x).name) + " k " +
         std::to_string(shape.k);
}

}  // namespace

TEST_CASE("gemv with blocks passes gates without a warning at every length") {
  for (const Shape& shape : shapes()) {
    GemvProblem problem;
    problem.k = shape.k;
    problem.layout = GemvLayout::R;
    problem.weights = shape.type;
    problem.x = shape.x;
    for (const auto& [name, repacked] :
         {std::pair("h200", false), std::pair("rtx4090", false), std::pair("h200", true)}) {
      if (repacked && repacked_fields(shape.type).empty()) continue;
      problem.repacked = repacked;
      const ptx::Gpu* gpu = ptx::find_gpu(name);
      REQUIRE(gpu != nullptr);
      for (const std::uint32_t n : {67u, 4096u}) {
        problem.n = n;
        INFO(to_text(shape) << " n " << n << " on " << name);
        const Gemv gemv{plan_gemv(problem, *gpu)};
        CHECK(complaints(gemv.build(ptx::target(gpu->target)).module()) == "");
      }
    }
  }
}

TEST_CASE("gemv_group with blocks passes gates without a warning at every length") {
  for (const Shape& shape : shapes()) {
    GemvGroup group;
    group.k = shape.k;
    group.n0 = 64, group.n1 = 32, group.n2 = 32;
    group.w0 = group.w1 = group.w2 = shape.type;
    group.x = shape.x;
    GemvGroup gated = group;
    gated.n1 = gated.n0, gated.n2 = 0;
    gated.gate = GemvGate::Silu;
    for (const bool repacked : {false, true}) {
      if (repacked && repacked_fields(shape.type).empty()) continue;
      group.repacked = gated.repacked = repacked;
      INFO(to_text(shape) << (repacked ? ", repacked" : ""));
      CHECK(complaints(group.build(ptx::target("sm_90")).module()) == "");
      CHECK(complaints(gated.build(ptx::target("sm_89")).module()) == "");
    }
  }
}

TEST_CASE("batched_gemv with blocks passes gates without a warning at every length") {
  std::size_t number = 0;
  for (const Shape& shape : shapes()) {
    for (const std::uint32_t m : kRows) {
      // Every day one number of rows with each shape, in turn.
      if (!full() && number++ % (std::size(kRows) + 1) != 0) continue;
      for (const char* target : {"sm_75", "sm_90"}) {
        BatchedGemv batched;
        batched.k = shape.k;
        batched.n = 70;
        batched.m = m;
        batched.weights = shape.type;
        batched.x = shape.x;
        for (const bool repacked : {false, true}) {
          if (repacked && repacked_fields(shape.type).empty()) continue;
          batched.repacked = repacked;
          INFO(to_text(shape) << " m " << m << " for " << target << (repacked ? ", repacked" : ""));
          CHECK(complaints(batched.build(ptx::target(target)).module()) == "");
        }
      }
    }
  }
}

TEST_CASE("the cases of every kernel pass gates without a warning") {
  std::size_t kernels = 0;
  for (const KernelDescription& entry : catalog()) {
    for (const std::vector<std::uint64_t>& values : entry.cases()) {
      INFO(entry.name << " " << kernels);
      CHECK(complaints(entry.build(values, ptx::target("sm_90"))) == "");
      ++kernels;
    }
  }
  CHECK(kernels > 50);
}
