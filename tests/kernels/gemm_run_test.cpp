// tests/kernels/gemm_run_test.cpp - GEMM kernels under all checks: schedules, bank conflicts
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "ptx/dice.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/kernels.hpp"
#include "support/half.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

// One kernel with f16 or bf16 matrices on a device of its own.
template <class Kernel>
class Runner {
 public:
  Runner(const Kernel& kernel, std::string_view target)
      : kernel_(kernel),
        problem_(kernel.problem),
        geometry_(kernel.geometry()),
        device_(emulator::default_gpu(target)),
        program_(emulator::Program::load(device_, kernel.build(ptx::target(target)).module())) {
    a_ = device_.allocate(2 * problem_.elements_a(), "a");
    b_ = device_.allocate(2 * problem_.elements_b(), "b");
    c_ = device_.allocate(4 * problem_.elements_c(), "c");
    if constexpr (requires { Describe<Kernel>::workspace(kernel); }) {
      const WorkspaceNeed need = Describe<Kernel>::workspace(kernel);
      if (!need.none()) {
        workspace_ = device_.allocate(need.tickets + need.parts, "workspace");
        device_.fill(workspace_, std::byte{0}, need.tickets);
      }
    }
    fill(a_, problem_.elements_a());
    fill(b_, problem_.elements_b());
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
  void fill(std::uint64_t at, std::uint64_t count) {
    Dice dice(count);
    std::vector<std::uint16_t> values;
    for (std::uint64_t i = 0; i < count; ++i) {
      const float value = static_cast<float>(dice.bits() % 2001) * 0.001f - 1;
      values.push_back(problem_.type == ElementType::f16 ? float_to_f16(value)
                                                         : float_to_bf16(value));
    }
    device_.write(at, std::as_bytes(std::span(values)));
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
  for (const std::uint32_t tile : {16u, 32u}) {
    for (const bool transposed : {false, true}) {
      GemmTiled kernel;
      kernel.tile = tile;
      kernel.problem = {
          .m = 40, .n = 33, .k = 50, .transpose_a = transposed, .transpose_b = transposed};
      CHECK(run_schedules(kernel).others == 0);
    }
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
