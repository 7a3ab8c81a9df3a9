// tests/kernels/gemm_test.cpp - structure and numbers of the GEMM kernels
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "launcher/rig.hpp"
#include "ptxgen/analysis.hpp"
#include "ptxgen/check.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "support/half.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

struct LoopCounts {
  std::size_t products = 0, fragments = 0, copies = 0, others = 0;
  [[nodiscard]] std::size_t rest() const { return fragments + copies + others; }
};

// The instructions of the loop that has the products.
LoopCounts main_loop(const ptx::Module& module) {
  const ptx::Function& function = module.functions[0];
  const analysis::Cfg cfg(function);
  const analysis::LoopForest& forest = cfg.loops();
  LoopCounts found;
  for (std::uint32_t loop = 0; loop < forest.loops().size(); ++loop) {
    LoopCounts counts;
    for (const std::uint32_t node : forest.nodes(loop)) {
      const analysis::Block& block = cfg.blocks()[node];
      for (std::uint32_t i = block.first; i < block.end; ++i) {
        const ptx::Instruction& s = function.body[i];
        if (s.kind != ptx::StatementKind::Instruction) continue;
        const std::string_view mnemonic = ptx::info(s.op).mnemonic;
        const bool copy = s.op == ptx::Op::cp_async || s.op == ptx::Op::cp_async_src_size;
        ++(mnemonic == "mma"        ? counts.products
           : mnemonic == "ldmatrix" ? counts.fragments
           : copy                   ? counts.copies
                                    : counts.others);
      }
    }
    if (counts.products != 0) found = counts;
  }
  return found;
}

GemmMma kernel_of(bool ta, bool tb, GemmTile tile) {
  GemmMma kernel;
  kernel.problem = {.m = 1024, .n = 1024, .k = 1024, .transpose_a = ta, .transpose_b = tb};
  kernel.tile = tile;
  return kernel;
}

}  // namespace

TEST_CASE("the main loop of gemm_mma has at most 0.6 other instructions for each product") {
  std::printf(
      "other instructions for each mma.sync.m16n8k16, by tile, transpositions and stages\n");
  for (const auto& [tile, limit] :
       {std::pair{GemmTile::t128x128x32, 0.6}, std::pair{GemmTile::t256x128x32, 0.6},
        std::pair{GemmTile::t128x128x32w8, 0.9}}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        for (const std::uint32_t stages : {2u, 3u, 4u}) {
          GemmMma kernel = kernel_of(ta, tb, tile);
          kernel.stages = stages;
          const LoopCounts loop = main_loop(kernel.build(ptx::target("sm_90")).module());
          const GemmTileShape& shape = kernel.shape();
          REQUIRE(loop.products ==
                  stages * shape.warp_m() / 16 * shape.warp_n() / 8 * shape.k / 16);
          const double share =
              static_cast<double>(loop.rest()) / static_cast<double>(loop.products);
          std::printf(
              "%-13s %c%c %u stages: %.3f (%zu mma, %zu ldmatrix, %zu cp.async, %zu more)\n",
              std::string(shape.name).c_str(), ta ? 't' : 'n', tb ? 't' : 'n', stages, share,
              loop.products, loop.fragments, loop.copies, loop.others);
          CHECK(share <= limit);
        }
      }
    }
  }
}

namespace {

struct Matrices {
  std::vector<std::uint16_t> a, b;
  std::vector<float> c;
};

// C of a problem with tight f16 matrices.
std::vector<float> product(const Rig& rig, const GemmMma& kernel, const Matrices& in) {
  const Buffer<f16> a(rig.context, in.a);
  const Buffer<f16> b(rig.context, in.b);
  const Buffer<f32> c(rig.context, std::vector<float>(in.c.size(), 7.0f));
  rig.launcher.launch(kernel, {.c = c, .a = a, .b = b}, rig.stream);
  rig.stream.synchronize();
  return read(c);
}

}  // namespace

TEST_CASE("a NaN or an infinity reaches exactly the outputs of its row or column") {
  const Rig rig;
  constexpr std::uint32_t kM = 37, kN = 45, kK = 67;
  for (const bool transposed : {false, true}) {
    GemmMma kernel;
    kernel.problem = {.m = kM,
                      .n = kN,
                      .k = kK,
                      .transpose_a = transposed,
                      .transpose_b = transposed,
                      .lda = transposed ? kM : kK};
    kernel.tile = GemmTile::t32x32x32;
    Matrices in;
    for (std::uint32_t i = 0; i < kM * kK; ++i)
      in.a.push_back(float_to_f16(0.25f + 0.01f * static_cast<float>(i % 7)));
    for (std::uint32_t i = 0; i < kK * kN; ++i)
      in.b.push_back(float_to_f16(0.5f - 0.02f * static_cast<float>(i % 5)));
    in.c.resize(kM * kN);
    const std::vector<float> plain = product(rig, kernel, in);
    for (const float special :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (const std::uint32_t term : {0u, 31u, 32u, 63u, 66u}) {
        Matrices changed = in;
        const std::uint32_t row = 33;
        const std::uint32_t column = 44;
        changed.a[transposed ? term * kM + row : row * kK + term] = float_to_f16(special);
        changed.b[transposed ? column * kK + term : term * kN + column] = float_to_f16(special);
        const std::vector<float> got = product(rig, kernel, changed);
        std::size_t wrong = 0;
        for (std::uint32_t i = 0; i < kM; ++i) {
          for (std::uint32_t j = 0; j < kN; ++j) {
            const float c = got[i * kN + j];
            if (i != row && j != column) {
              wrong += c == plain[i * kN + j] ? 0 : 1;
            } else {
              wrong += (std::isnan(special) ? std::isnan(c) : c == special) ? 0 : 1;
            }
          }
        }
        INFO("term " << term << ", " << special << (transposed ? ", transposed" : ""));
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("products of small integers are exact") {
  const Rig rig;
  GemmMma kernel;
  kernel.problem = {.m = 129, .n = 65, .k = 300};
  kernel.tile = GemmTile::t64x64x32;
  const GemmProblem& p = kernel.problem;
  Matrices in;
  std::vector<int> a, b;
  for (std::uint32_t i = 0; i < p.m * p.k; ++i) a.push_back(static_cast<int>(i * 7 % 17) - 8);
  for (std::uint32_t i = 0; i < p.k * p.n; ++i) b.push_back(static_cast<int>(i * 5 % 19) - 9);
  for (const int value : a) in.a.push_back(float_to_f16(static_cast<float>(value)));
  for (const int value : b) in.b.push_back(float_to_f16(static_cast<float>(value)));
  in.c.resize(p.m * p.n);
  const std::vector<float> got = product(rig, kernel, in);
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; i < p.m; ++i) {
    for (std::uint32_t j = 0; j < p.n; ++j) {
      int sum = 0;
      for (std::uint32_t t = 0; t < p.k; ++t) sum += a[i * p.k + t] * b[t * p.n + j];
      wrong += got[i * p.n + j] == static_cast<float>(sum) ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
}

namespace {

std::string refusal(const GemmMma& kernel, std::string_view target = "sm_90") {
  try {
    static_cast<void>(kernel.build(ptx::target(target)));
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Build);
    return error.code + ": " + error.message;
  }
  return "accepted";
}

GemmMma changed(void (*change)(GemmMma&)) {
  GemmMma kernel;
  change(kernel);
  return kernel;
}

}  // namespace

namespace {

// In tiles of 16 and 32, and on tensor cores.
void check_shape(std::uint32_t m, std::uint32_t n, std::uint32_t k) {
  const Rig rig;
  for (const char* name : {"gemm_tiled", "gemm_mma"}) {
    const KernelDescription& kernel = kernel_named(name);
    for (const std::uint64_t tile : {0u, 1u}) {
      std::vector<std::uint64_t> values = kernel.default_values();
      values[parameter_index(kernel, "m")] = m;
      values[parameter_index(kernel, "n")] = n;
      values[parameter_index(kernel, "k")] = k;
      const std::size_t at = parameter_index(kernel, "tile");
      const bool tensor_cores = kernel.type == kDescription<GemmMma>.type;
      values[at] = tensor_cores ? kernel.parameters[at].max - tile : tile;
      const Verification result = verify(rig.launcher, rig.context, kernel, values);
      INFO(name << ", " << result.shape << ": " << result.error_text() << result.first_wrong);
      CHECK(result.ok());
      CHECK(result.compared == std::uint64_t{m} * n);
    }
  }
}

}  // namespace

TEST_CASE("falsification 107: 17 rows in tiles of 16") { check_shape(17, 40, 50); }
TEST_CASE("falsification 108: 33 columns in tiles of 32") { check_shape(20, 33, 50); }
TEST_CASE("falsification 109: one row") { check_shape(1, 70, 33); }
TEST_CASE("falsification 110: one column") { check_shape(70, 1, 33); }

namespace {

// The text with a statement that ends threads in front of the first barrier of the k loop.
std::string with_early_exit(const ptx::Module& module) {
  std::string text = ptx::print(module);
  const std::size_t barrier = text.find("bar.sync 0;");
  REQUIRE(barrier != std::string::npos);
  text.insert(barrier,
              "{\n.reg .u32 %early;\n.reg .pred %ends;\nmov.u32 %early, %tid.x;\n"
              "setp.gt.u32 %ends, %early, 5;\n@%ends exit;\n}\n");
  return text;
}

}  // namespace

TEST_CASE("falsification 104, 114: the barriers of the k loops are reached by all threads") {
  GemmTiled tiled;
  GemmMma mma;
  tiled.problem = mma.problem = {.m = 100, .n = 90, .k = 200};
  mma.tile = GemmTile::t64x64x32;
  for (const ptx::Module& module :
       {tiled.build(ptx::target("sm_90")).module(), mma.build(ptx::target("sm_90")).module()}) {
    CHECK(gates::barrier_safety(module).empty());
    const std::vector<Finding> found = gates::barrier_safety(ptx::parse(with_early_exit(module)));
    REQUIRE(found.size() >= 1);
    CHECK(found[0].rule == "exited-before-barrier");
  }
}

TEST_CASE("what a GEMM cannot be is refused by name") {
  CHECK(refusal(changed([](GemmMma& g) { g.problem.lda = 511; })) ==
        "bad-problem: lda is 511; it may be 0 or 512, the elements of a row, to 2147483648");
  CHECK(refusal(changed([](GemmMma& g) { g.problem.ldb = 100; })) ==
        "bad-problem: ldb is 100; it may be 0 or 512, the elements of a row, to 2147483648");
  CHECK(refusal(changed([](GemmMma& g) { g.problem.k = 0; })) ==
        "bad-problem: k is 0; it may be 1 to 2147483647");
  CHECK(refusal(changed([](GemmMma& g) { g.problem.alignment = 12; })) ==
        "bad-problem: alignment is 12 B; it may be a power of two");
  CHECK(
      refusal(changed([](GemmMma& g) {
        g.problem.batch = 2;
        g.problem.stride_c = 1000;
      })) ==
      "bad-problem: stride_c is 1000; it may be 0 or at least 262144, so that the matrices of the "
      "batch are disjoint");
  CHECK(refusal(changed([](GemmMma& g) { g.problem.type = ElementType::q8_0; })) ==
        "bad-problem: type is q8_0; it may be f32, f16, bf16 or e4m3");
  CHECK(
      refusal(changed([](GemmMma& g) { g.problem.type = ElementType::f32; }), "sm_75") ==
      "target-lacks: type is f32, multiplied as tf32, which the tensor cores of sm_75 do not have; "
      "they need sm_80 or newer: take f16");
  CHECK(refusal(changed([](GemmMma& g) { g.stages = 6; })) ==
        "bad-plan: stages is 6; it may be 2 to 5");
  CHECK(
      refusal(changed([](GemmMma& g) { g.problem.type = ElementType::bf16; }), "sm_75") ==
      "target-lacks: type is bf16, which the tensor cores of sm_75 do not have; they need sm_80 or "
      "newer: take f16");
  CHECK(refusal(changed([](GemmMma& g) { g.stages = 5; }), "sm_75") ==
        "target-lacks: 5 stages of tile 128x128x32 are 81920 B of shared memory; a block on sm_75 "
        "may have 65536 B: take fewer stages or a smaller tile");
}

TEST_CASE("copies are as wide as alignment, pitch and stride allow") {
  GemmMma kernel;
  CHECK(kernel.load_bytes_a() == 16);
  kernel.problem.lda = 516;
  CHECK(kernel.load_bytes_a() == 8);
  kernel.problem.lda = 514;
  CHECK(kernel.load_bytes_a() == 4);
  kernel.problem.lda = 513;
  CHECK(kernel.load_bytes_a() == 2);
  CHECK(kernel.load_bytes_b() == 16);
  kernel.problem.stride_b = 4;
  CHECK(kernel.load_bytes_b() == 8);
  kernel.problem.alignment = 4;
  CHECK(kernel.load_bytes_b() == 4);
  // An element at least.
  kernel.problem.alignment = 2;
  kernel.problem.type = ElementType::f32;
  CHECK(kernel.load_bytes_b() == 4);
}
