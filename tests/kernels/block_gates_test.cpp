// tests/kernels/block_gates_test.cpp - GEMVs with weights in blocks pass gates without a warning
#include <catch2/catch.hpp>

#include <cstdio>
#include <string>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"
#include "support/served_target.hpp"

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

TEST_CASE("gemv_group with rows of lanes passes gates without a warning") {
  for (const ElementType type : kTypes) {
    GemvGroup group{.k = 1536, .n0 = 576, .n1 = 70, .n2 = 0, .w0 = type, .w1 = type};
    for (const std::uint32_t rows : {1u, 4u}) {
      group.lane_rows = rows;
      GemvGroup one = group, gated = group;
      one.n1 = 0;
      gated.n1 = gated.n0;
      gated.gate = GemvGate::SiluPrecise;
      INFO(info(type).name << ", " << rows);
      for (const GemvGroup& each : {group, one, gated}) {
        CHECK(complaints(each.build(ptx::target("sm_90")).module()) == "");
      }
    }
  }
}

namespace {

std::string refusal_of(const GemvGroup& group) {
  try {
    group.check_layout(ptx::target("sm_90"));
  } catch (const Error& error) {
    return error.message;
  }
  return {};
}

}  // namespace

TEST_CASE("gemv_group says which groups it does not run by rows of lanes") {
  GemvGroup group{.k = 576, .n0 = 64, .n1 = 64, .n2 = 0};
  group.w0 = group.w1 = ElementType::q4_1;
  group.lane_rows = 2;
  CHECK(refusal_of(group) == "");
  group.lane_rows = 3;
  CHECK(refusal_of(group) == "lane_rows is 3; it is 0, 1, 2 or 4");
  group.lane_rows = 1;
  group.x = ElementType::q8_1;
  CHECK(refusal_of(group) == "x is q8_1; with lane_rows it is f32, f16 or bf16");
  group.x = ElementType::f32;
  group.repacked = true;
  CHECK(refusal_of(group) == "lane_rows are of blocks as stored; with repacked rows it is 0");
  group.repacked = false;
  group.w1 = ElementType::q8_0;
  group.k = 96;
  CHECK(refusal_of(group) == "k is 96; with lane_rows and weights of q8_0 it is a multiple of 64");
  group.w1 = ElementType::f16;
  CHECK(refusal_of(group) == "w1 is f16; with lane_rows weights are in blocks");
  group.n1 = 0;
  CHECK(refusal_of(group) == "");
  group.k = 96 * 1024;
  CHECK(refusal_of(group) ==
        "k is 98304; with lane_rows x takes 344064 B of shared memory, and a block on sm_90 may "
        "have 232448 B");
  group.n2 = 7;
  CHECK(refusal_of(group) == "n1 is 0 and n2 7; without a second matrix there is no third");
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
      // Tiles of partial sums in the workspace are whole: no index of theirs meets a bound.
      bool split = false;
      for (std::size_t i = 0; i < values.size(); ++i) {
        split = split || (entry.parameters[i].name == "splits" && values[i] > 1);
      }
      if (split) continue;
      CHECK(complaints(entry.build(values, test::served_target(entry, "sm_90"))) == "");
      ++kernels;
    }
  }
  CHECK(kernels > 50);
}
