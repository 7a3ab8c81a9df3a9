// tests/kernels/gemm_run_test.cpp - GEMM kernels under all checks: schedules, bank conflicts
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/quantization/random_blocks.hpp"
#include "ptx/dice.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

// One kernel on a device of its own.
template <class Kernel>
class Runner {
 public:
  Runner(const Kernel& kernel, std::string_view target)
      : kernel_(kernel),
        problem_(kernel.problem),
        geometry_(kernel.geometry()),
        device_(emulator::default_gpu(target)),
        program_(emulator::Program::load(device_, kernel.build(ptx::target(target)).module())) {
    a_ = device_.allocate(bytes(problem_.type, problem_.elements_a()), "a");
    b_ = device_.allocate(bytes(problem_.type_b(), problem_.elements_b()), "b");
    c_ = device_.allocate(4 * problem_.elements_c(), "c");
    if constexpr (requires { Describe<Kernel>::workspace(kernel); }) {
      const WorkspaceNeed need = Describe<Kernel>::workspace(kernel);
      if (!need.none()) {
        workspace_ = device_.allocate(need.tickets + need.parts, "workspace");
        device_.fill(workspace_, std::byte{0}, need.tickets);
      }
    }
    fill(a_, problem_.type, problem_.elements_a());
    fill(b_, problem_.type_b(), problem_.elements_b());
  }

  emulator::Result run(std::uint64_t seed) {
    std::vector<std::byte> block;
    const auto put = [&](const auto& value) {
      const auto bytes = std::as_bytes(std::span(&value, 1));
      block.insert(block.end(), bytes.begin(), bytes.end());
    };
    for (const std::uint64_t address : {c_, a_, b_, std::uint64_t{0}, std::uint64_t{0}})
      put(address);
    if constexpr (requires { Describe<Kernel>::workspace(kernel_); }) put(workspace_);
    put(1.0f);
    put(0.0f);
    put(problem_.m);
    emulator::Launch launch;
    launch.kernel = Describe<Kernel>::text.name;
    launch.grid = {geometry_.grid.x, geometry_.grid.y, geometry_.grid.z};
    launch.block = {geometry_.block.x, geometry_.block.y, geometry_.block.z};
    launch.dynamic_shared_bytes = geometry_.dynamic_shared_bytes;
    launch.parameters = block;
    emulator::Options options;
    options.checks = emulator::RuleSet::all();
    options.seed = seed;
    return emulator::run(program_, launch, options);
  }
  std::vector<float> results() {
    std::vector<float> c(problem_.elements_c());
    device_.read(c_, std::as_writable_bytes(std::span(c)));
    return c;
  }

 private:
  void fill(std::uint64_t at, ElementType type, std::uint64_t count) {
    if (info(type).block_values != 1) {
      device_.write(at, random_blocks(type, count, -1, 1, count));
      return;
    }
    Dice dice(count);
    std::vector<double> values;
    for (std::uint64_t i = 0; i < count; ++i) {
      values.push_back(static_cast<double>(dice.bits() % 2001) * 0.001 - 1);
    }
    device_.write(at, to_elements(type, values));
  }

  Kernel kernel_;
  GemmProblem problem_;
  LaunchGeometry geometry_;
  emulator::Device device_;
  emulator::Program program_;
  std::uint64_t a_ = 0, b_ = 0, c_ = 0, workspace_ = 0;
};

// Runs several schedules; the wavefronts of the last one beyond the fewest, by kind of access.
struct Conflicts {
  std::uint64_t fragments = 0, copies = 0, others = 0;
};
template <class Kernel>
Conflicts run_schedules(const Kernel& kernel, std::string_view target = "sm_90") {
  Runner<Kernel> runner(kernel, target);
  Conflicts conflicts;
  std::vector<float> first;
  const int schedules = count(2, 20);
  for (int seed = 0; seed < schedules; ++seed) {
    const emulator::Result result = runner.run(static_cast<std::uint64_t>(seed));
    INFO(to_text(kernel.problem) << ", schedule " << seed);
    INFO((result.findings.empty() ? "" : emulator::to_text(result.findings[0])));
    CHECK(result.findings.empty());
    const std::vector<float> c = runner.results();
    if (seed == 0) first = c;
    CHECK(std::memcmp(c.data(), first.data(), 4 * c.size()) == 0);
    if (seed + 1 != schedules) continue;
    for (const emulator::LineCounters& line : result.counters.lines) {
      const std::uint64_t extra = line.shared.bank_conflicts;
      (line.opcode.starts_with("ldmatrix")   ? conflicts.fragments
       : line.opcode.starts_with("cp.async") ? conflicts.copies
                                             : conflicts.others) += extra;
    }
  }
  return conflicts;
}

}  // namespace

TEST_CASE("gemm_mma has no bank conflicts and no findings, and one result in every schedule") {
  for (std::size_t tile = 0; tile < std::size(kGemmTiles); ++tile) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        // Every day one of the four.
        if (!full() && (tile + (ta ? 1 : 0) + (tb ? 2 : 0)) % 4 != 0) continue;
        GemmMma kernel;
        kernel.tile = static_cast<GemmTile>(tile);
        kernel.stages = 2 + static_cast<std::uint32_t>(tile) % 4;
        const GemmTileShape& shape = kernel.shape();
        kernel.problem = {.m = shape.m + 8u,
                          .n = shape.n,
                          .k = full() ? 232u : 104u,
                          .type = tile % 2 == 0 ? ElementType::f16 : ElementType::bf16,
                          .transpose_a = ta,
                          .transpose_b = tb};
        const Conflicts conflicts = run_schedules(kernel);
        INFO(shape.name << (ta ? " t" : " n") << (tb ? "t" : "n"));
        CHECK(conflicts.fragments == 0);
        CHECK(conflicts.copies == 0);
        // Outputs of warps that are 16 wide: two rows of them share banks, after the loop.
        if (shape.warp_n() > 16) CHECK(conflicts.others == 0);
      }
    }
  }
}

TEST_CASE("gemm_tiled has no bank conflicts and no findings, and one result in every schedule") {
  for (const std::uint32_t tile : {16u, 32u, 64u, 128u}) {
    for (const bool transposed : {false, true}) {
      GemmTiled kernel;
      kernel.tile = tile;
      kernel.problem = {
          .m = 40, .n = 33, .k = 50, .transpose_a = transposed, .transpose_b = transposed};
      INFO(tile);
      CHECK(run_schedules(kernel).others == 0);
    }
  }
}

TEST_CASE("a B in blocks is dequantised without bank conflicts and findings") {
  constexpr ElementType kBlocks[] = {ElementType::q4_0, ElementType::q4_k, ElementType::q5_0,
                                     ElementType::q6_k, ElementType::q8_0, ElementType::q5_k,
                                     ElementType::q4_1, ElementType::q5_1};
  std::size_t next = 0;
  const auto each_type = [&](const auto& run) {
    // Every day one format for each kernel and tile.
    if (full()) std::ranges::for_each(kBlocks, run);
    if (!full()) run(kBlocks[next++ % std::size(kBlocks)]);
  };
  for (const std::uint32_t tile : {16u, 32u, 64u, 128u}) {
    each_type([&](ElementType type) {
      GemmTiled kernel;
      kernel.tile = tile;
      kernel.problem = {.m = 20, .n = 130, .k = 256, .type = ElementType::f32, .b = type};
      kernel.problem.transpose_b = true;
      INFO(tile << " " << to_text(kernel.problem));
      CHECK(run_schedules(kernel).others == 0);
    });
  }
  for (const GemmTile tile : {GemmTile::t32x32x32, GemmTile::t128x64x32, GemmTile::t64x64x32}) {
    each_type([&](ElementType type) {
      GemmMma kernel;
      kernel.tile = tile;
      kernel.stages = 2 + static_cast<std::uint32_t>(next) % 3;
      kernel.problem = {.m = 40, .n = 70, .k = 256, .b = type, .transpose_b = true};
      const Conflicts conflicts = run_schedules(kernel);
      INFO(kernel.shape().name << " " << to_text(kernel.problem));
      CHECK(conflicts.fragments + conflicts.copies == 0);
      // As without blocks: outputs of warps that are 16 wide, after the loop.
      if (kernel.shape().warp_n() > 16) CHECK(conflicts.others == 0);
    });
  }
}

TEST_CASE("split sums have the same bits in every schedule, launch after launch") {
  for (const std::uint32_t splits : {2u, 3u}) {
    GemmMma kernel;
    kernel.tile = GemmTile::t32x32x32;
    kernel.splits = splits;
    kernel.problem = {.m = 50, .n = 40, .k = 192, .batch = 2, .stride_a = 9600, .stride_c = 2000};
    const Conflicts conflicts = run_schedules(kernel);
    CHECK(conflicts.fragments + conflicts.copies == 0);
  }
}

TEST_CASE("stream-K has the same bits in every schedule, launch after launch") {
  // Blocks with parts of three tiles and whole ones; tiles in more parts than two.
  for (const std::uint32_t blocks : {3u, 7u}) {
    GemmMma kernel;
    kernel.tile = GemmTile::t32x32x32;
    kernel.stages = 2;
    kernel.blocks = blocks;
    kernel.problem = {.m = 50, .n = 70, .k = 192, .transpose_b = blocks == 7};
    if (blocks == 3) kernel.problem.n = 100;
    const Conflicts conflicts = run_schedules(kernel);
    CHECK(conflicts.fragments + conflicts.copies == 0);
  }
}

TEST_CASE("copies of fewer bytes, and through registers, are free of findings in every schedule") {
  for (const std::uint32_t alignment : {8u, 4u, 2u}) {
    GemmMma kernel;
    kernel.tile = GemmTile::t64x64x32;
    kernel.problem = {.m = 70,
                      .n = 60,
                      .k = 100,
                      .transpose_a = alignment == 4,
                      .lda = 100,
                      .alignment = alignment};
    CHECK(run_schedules(kernel).fragments == 0);
    if (alignment == 2) CHECK(run_schedules(kernel, "sm_75").fragments == 0);
  }
}
