// tests/kernels/gemm_blocks_test.cpp - matrix products with a B in blocks, bit for bit
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "kernels/quantization/random_blocks.hpp"
#include "launcher/rig.hpp"
#include "ptx/dice.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/gemm/planner.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

constexpr ElementType kBlocks[] = {ElementType::q4_0, ElementType::q4_1, ElementType::q5_0,
                                   ElementType::q5_1, ElementType::q8_0, ElementType::q4_k,
                                   ElementType::q5_k, ElementType::q6_k};

struct Inputs {
  std::vector<std::byte> a, b;
};

std::vector<double> numbers(std::uint64_t count) {
  Dice dice(count);
  std::vector<double> values;
  for (std::uint64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<double>(dice.bits() % 2001) * 0.001 - 1);
  }
  return values;
}

Inputs inputs_of(const GemmProblem& p) {
  return {to_elements(p.type, numbers(p.elements_a())),
          random_blocks(p.type_b(), p.elements_b(), -2, 2, 7)};
}

Buffer<b8> uploaded(const Rig& rig, const std::vector<std::byte>& bytes) {
  return Buffer<b8>(rig.context,
                    std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
}

template <class Kernel>
std::vector<float> product(const Rig& rig, const Kernel& kernel, const Inputs& in) {
  const Buffer<b8> a = uploaded(rig, in.a);
  const Buffer<b8> b = uploaded(rig, in.b);
  const Buffer<f32> c(rig.context, std::vector<float>(kernel.problem.elements_c(), 7.0f));
  rig.launcher.launch(kernel, {.c = c, .a = a, .b = b}, rig.stream);
  rig.stream.synchronize();
  return read(c);
}

// The same with a B that the host dequantised and rounded to `type`.
template <class Kernel>
std::vector<float> of_floats(const Rig& rig, Kernel kernel, Inputs in, ElementType type) {
  in.b = to_elements(type, to_values(kernel.problem.type_b(), in.b));
  kernel.problem.b = type;
  return product(rig, kernel, in);
}

GemmProblem problem_of(ElementType type, ElementType b) {
  return {.m = 21, .n = 39, .k = 256, .type = type, .b = b, .transpose_b = true};
}

}  // namespace

TEST_CASE("gemm_tiled multiplies blocks as the f32 values that dequantize gives") {
  const Rig rig;
  for (const ElementType b : kBlocks) {
    const GemmProblem problem = problem_of(ElementType::f32, b);
    const Inputs in = inputs_of(problem);
    const std::vector<float> expected =
        of_floats(rig, GemmTiled{problem, 32}, in, ElementType::f32);
    for (const std::uint32_t tile : {16u, 32u, 64u, 128u}) {
      // Every day one of the four.
      if (!full() && tile != 16u << (static_cast<unsigned>(b) % 4)) continue;
      INFO(to_string(b) << ", tile " << tile);
      CHECK(product(rig, GemmTiled{problem, tile}, in) == expected);
    }
    if (full()) CHECK(product(rig, GemmNaive{problem}, in) == expected);
  }
}

TEST_CASE("gemm_mma multiplies blocks as their values rounded to the type of A") {
  const Rig rig;
  for (const ElementType type : {ElementType::f16, ElementType::bf16}) {
    for (const ElementType b : kBlocks) {
      if (!full() && (static_cast<int>(b) + static_cast<int>(type)) % 3 != 0) continue;
      GemmMma kernel{problem_of(type, b), GemmTile::t64x64x32};
      const Inputs in = inputs_of(kernel.problem);
      const std::vector<float> expected = of_floats(rig, kernel, in, type);
      INFO(to_string(type) << " * " << to_string(b));
      CHECK(product(rig, kernel, in) == expected);
      // Tile and stages do not change the bits; shares of a sum do.
      kernel.tile = GemmTile::t32x32x32;
      kernel.stages = 4;
      CHECK(product(rig, kernel, in) == expected);
    }
  }
}

TEST_CASE("weights of f32 are rounded on their way to the tensor cores") {
  const Rig rig;
  GemmMma kernel{problem_of(ElementType::f16, ElementType::f32), GemmTile::t32x32x32};
  const GemmProblem& p = kernel.problem;
  const Inputs in{to_elements(ElementType::f16, numbers(p.elements_a())),
                  to_elements(ElementType::f32, numbers(p.elements_b()))};
  CHECK(product(rig, kernel, in) == of_floats(rig, kernel, in, ElementType::f16));
}

namespace {

std::string refusal(const GemmProblem& problem) {
  try {
    check(problem);
    check(GemmMma{problem}, ptx::target("sm_90"));
  } catch (const Error& error) {
    return error.code + ": " + error.message;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("what a B in blocks cannot be is refused by name") {
  GemmProblem p{.k = 512, .b = ElementType::q4_k, .transpose_b = true};
  CHECK(refusal(p) == "accepted");
  GemmProblem other = p;
  other.transpose_b = false;
  CHECK(refusal(other) ==
        "bad-problem: transpose_b is false; with a B of q4_k it can only be true: blocks are parts "
        "of rows along k");
  other = p;
  other.k = 320;
  CHECK(refusal(other) ==
        "bad-problem: k is 320; with a B of q4_k it may be a multiple of 256, the values of a "
        "block: pad A and B with zeros");
  other = p;
  other.ldb = 600;
  CHECK(refusal(other) ==
        "bad-problem: ldb is 600; with a B of q4_k it may be a multiple of 256, the values of a "
        "block: pad A and B with zeros");
  other = p;
  other.b = ElementType::q8_1;
  CHECK(
      refusal(other) ==
      "bad-problem: b is q8_1; it may be f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k "
      "or q6_k");
  other = p;
  other.type = ElementType::f32;
  CHECK(
      refusal(other) ==
      "bad-plan: type is f32 with a B of q4_k; tensor cores multiply it with an A of f16 or bf16: "
      "convert A, or take gemm_tiled");
  other = {.k = 40, .b = ElementType::f32, .transpose_b = true};
  CHECK(refusal(other) ==
        "bad-plan: B is f32, [n x k], with k = 40; to be rounded to f16 on the way it is stored [n "
        "x k], with k a multiple of 32: take gemm_tiled");
}

TEST_CASE("the family serves a B in blocks by the number of rows") {
  const Rig rig;
  const auto chosen = [&](std::uint32_t m, ElementType type) {
    GemmProblem p{.m = m, .n = 96, .k = 512, .type = type, .b = ElementType::q4_k};
    p.transpose_b = true;
    const Inputs in = inputs_of(p);
    const Buffer<b8> a = uploaded(rig, in.a);
    const Buffer<b8> b = uploaded(rig, in.b);
    const Buffer<f32> c(rig.context, p.elements_c());
    return rig.launcher.plan(p, {.c = c, .a = a, .b = b}, rig.stream).record().implementation;
  };
  CHECK(chosen(1, ElementType::f32) == "gemv");
  CHECK(chosen(1, ElementType::f16) == "gemv");
  CHECK(chosen(6, ElementType::f32) == "batched_gemv");
  CHECK(chosen(200, ElementType::f32) == "tiled");
  CHECK(chosen(200, ElementType::f16) == "mma");
  CHECK(chosen(200, ElementType::bf16) == "mma");
}

TEST_CASE("the planner counts the bytes of blocks") {
  const ptx::Gpu& gpu = *ptx::find_gpu("h100");
  GemmProblem p{.m = 64, .n = 8192, .k = 8192, .transpose_b = true};
  const GemmPrediction floats = predict(GemmMma{p, GemmTile::t64x64x32}, gpu);
  p.b = ElementType::q4_0;
  const GemmPrediction blocks = predict(GemmMma{p, GemmTile::t64x64x32}, gpu);
  CHECK(blocks.terms.dram < 0.4 * floats.terms.dram);
  CHECK(blocks.terms.tensor > floats.terms.tensor);  // dequantising takes issue slots
  CHECK(detail::gemm_cost(p).bytes_read ==
        std::uint64_t{64} * 8192 * 2 + std::uint64_t{8192} * 8192 / 32 * 18);
}

TEST_CASE("large f32 products have several outputs of a thread") {
  const ptx::Gpu& gpu = *ptx::find_gpu("h100");
  const GemmProblem p{.m = 512, .n = 4096, .k = 4096, .type = ElementType::f32};
  const GemmCandidate best = rank_gemm_plans(p, gpu).front();
  const auto* tiled = std::get_if<GemmTiled>(&best.kernel);
  REQUIRE(tiled != nullptr);
  CHECK(tiled->outputs() > 1);
  CHECK(predict(GemmTiled{p, 32}, gpu).us > 1.5 * best.prediction.us);
}
