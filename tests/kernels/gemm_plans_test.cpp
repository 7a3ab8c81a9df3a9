// tests/kernels/gemm_plans_test.cpp - every GEMM plan under all checks, in schedules
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <vector>

#include "kernels/observed.hpp"
#include "launcher/rig.hpp"
#include "ptx/dice.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/gemm/planner.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

constexpr ElementType kTypes[] = {ElementType::f16, ElementType::bf16, ElementType::f32,
                                  ElementType::e4m3};

// One tile and a few rows, columns and terms more.
GemmProblem problem_of(std::uint32_t m, std::uint32_t n, std::uint32_t k, unsigned transposed) {
  GemmProblem p{.m = m, .n = n, .k = k};
  p.transpose_a = transposed % 2 != 0;
  p.transpose_b = transposed / 2 != 0;
  return p;
}

// Tiles, stages, transpositions; splits and stream-K where the steps are complete; types in turn.
std::vector<GemmKernel> mma_plans() {
  std::vector<GemmKernel> all;
  for (std::size_t tile = 0; tile < std::size(kGemmTiles); ++tile) {
    for (std::uint32_t stages = 2; stages <= 5; ++stages) {
      for (unsigned transposed = 0; transposed < 4; ++transposed) {
        for (const char* how : {"undivided", "splits", "blocks"}) {
          GemmMma kernel;
          kernel.tile = static_cast<GemmTile>(tile);
          kernel.stages = stages;
          const GemmTileShape& shape = kernel.shape();
          // More tiles where blocks divide them.
          const std::uint32_t n = *how == 'b' ? shape.n + 8u : 40;
          kernel.problem = problem_of(shape.m + 8u, n, 72, transposed);
          kernel.problem.type = kTypes[all.size() % 4];
          if (kernel.problem.type == ElementType::e4m3 && transposed != 2)
            kernel.problem.type = ElementType::f16;
          // Five stages of the largest tile of f32 do not fit a block.
          if (kernel.problem.type == ElementType::f32) kernel.stages = std::min(stages, 4u);
          if (*how == 's') kernel.splits = 2;
          if (*how == 'b') kernel.blocks = 3;
          if (*how != 'u') kernel.problem.k = 2 * kernel.stages * kernel.step();
          all.emplace_back(kernel);
        }
      }
    }
  }
  return all;
}

std::vector<GemmKernel> wgmma_plans() {
  std::vector<GemmKernel> all;
  for (const WgmmaTile tile : {WgmmaTile::t128x256x64, WgmmaTile::t128x128x64}) {
    for (std::uint32_t stages = 2; stages <= 6; ++stages) {
      for (unsigned transposed = 0; transposed < 4; ++transposed) {
        for (const std::uint32_t cluster : {1u, 2u}) {
          for (const std::uint32_t workers : {0u, 2u, 3u}) {
            GemmWgmma kernel;
            kernel.tile = tile;
            kernel.stages = stages;
            kernel.cluster = cluster;
            kernel.blocks = workers * cluster;
            kernel.stream_k = workers == 3;
            const WgmmaTileShape& shape = kernel.shape();
            const std::uint32_t n = workers == 3 ? shape.n + 8u : 40;
            kernel.problem = problem_of(shape.m + 8u, n, 64 * stages, transposed);
            const bool eight_bits = transposed == 2 && all.size() % 4 == 0;
            kernel.problem.type = eight_bits            ? ElementType::e4m3
                                  : all.size() % 2 == 0 ? ElementType::f16
                                                        : ElementType::bf16;
            if (eight_bits) kernel.problem.k *= 2;
            if (serves(kernel, ptx::target("sm_90a"))) all.emplace_back(kernel);
          }
        }
      }
    }
  }
  return all;
}

std::vector<GemmKernel> plain_plans() {
  std::vector<GemmKernel> all;
  for (unsigned transposed = 0; transposed < 4; ++transposed) {
    for (const std::uint32_t tile : {16u, 32u, 64u, 128u}) {
      GemmTiled kernel;
      kernel.tile = tile;
      kernel.problem = problem_of(tile + 8, tile + 9, 50, transposed);
      kernel.problem.type = ElementType::f32;
      all.emplace_back(kernel);
    }
    all.emplace_back(GemmNaive{problem_of(20, 33, 50, transposed)});
  }
  return all;
}

// Random elements from -1 to 1.
Buffer<u8> drawn(const Rig& rig, Dice& dice, ElementType type, std::uint64_t count) {
  std::vector<double> values(count);
  for (double& value : values) value = static_cast<double>(dice.bits() % 2001) * 0.001 - 1;
  const std::vector<std::byte> elements = to_elements(type, values);
  std::vector<std::uint8_t> raw(elements.size());
  std::memcpy(raw.data(), elements.data(), raw.size());
  return Buffer<u8>(rig.context, raw);
}

template <class Kernel>
void check_schedules(const Rig& rig, Observed& observed, const Kernel& kernel, int schedules) {
  const GemmProblem& p = kernel.problem;
  Dice dice(seed());
  const Buffer<u8> a = drawn(rig, dice, p.type, p.elements_a());
  const Buffer<u8> b = drawn(rig, dice, p.type, p.elements_b());
  std::vector<float> first;
  for (int i = 0; i < schedules; ++i) {
    const Buffer<f32> c(rig.context, std::vector<float>(p.elements_c(), 7.0f));
    observed.schedule(static_cast<std::uint64_t>(i));
    rig.launcher.launch(kernel, {.c = c, .a = a, .b = b}, rig.stream);
    rig.stream.synchronize();
    const std::vector<float> got = read(c);
    if (i == 0) first = got;
    CHECK(std::memcmp(got.data(), first.data(), 4 * got.size()) == 0);
  }
}

// Parts of a full run take less than ten minutes each: `-c "part 3 of 16"` runs one of them.
constexpr std::size_t kParts = 16;

void check_part(const char* name, const std::vector<GemmKernel>& plans, std::size_t part) {
  const Rig rig;
  Observed observed(rig);
  const int schedules = count(2, 20);
  std::size_t run = 0;
  // Every day one, another one for each seed.
  const std::size_t only = seed() % plans.size();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (full() ? i % kParts != part : i != only) continue;
    INFO(to_text(plans[i]) << ", seed " << seed());
    std::visit([&](const auto& kernel) { check_schedules(rig, observed, kernel, schedules); },
               plans[i]);
    CHECK(observed.findings == "");
    observed.findings.clear();
    ++run;
  }
  std::printf("%s, part %zu: %zu of %zu plans in %d schedules under all checks\n", name, part + 1,
              run, plans.size(), schedules);
}

void check_plans(const char* name, const std::vector<GemmKernel>& plans) {
  for (std::size_t part = 0; part < (full() ? kParts : 1); ++part) {
    DYNAMIC_SECTION("part " << part + 1 << " of " << kParts) { check_part(name, plans, part); }
  }
}

}  // namespace

TEST_CASE("every plan of gemm_mma has no finding under all checks, and one result") {
  check_plans("gemm_mma", mma_plans());
}
TEST_CASE("every plan of gemm_wgmma has no finding under all checks, and one result") {
  check_plans("gemm_wgmma", wgmma_plans());
}
TEST_CASE(
    "every plan of gemm_tiled and gemm_naive has no finding under all checks, and one result") {
  check_plans("gemm_tiled, gemm_naive", plain_plans());
}
