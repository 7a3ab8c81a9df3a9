// tests/kernels/gemm_wgmma_test.cpp - the GEMM kernels of wgmma and wmma
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "kernels/gemm_sizes.hpp"
#include "kernels/observed.hpp"
#include "launcher/rig.hpp"
#include "ptx/dice.hpp"
#include "ptxgen/check.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "support/half.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

// Multiply-adds of a point, with what fills its tiles.
constexpr std::uint64_t kWgmmaWork = 2'200'000;
constexpr std::uint64_t kFullWgmmaWork = 40'000'000;

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

// Sizes of the grid, rows and matrices of multiples of 8 elements, any plan.
GemmWgmma drawn(Dice& dice) {
  GemmWgmma kernel;
  GemmProblem& p = kernel.problem;
  kernel.tile = dice.bits() % 2 == 0 ? WgmmaTile::t128x256x64 : WgmmaTile::t128x128x64;
  const WgmmaTileShape& shape = kernel.shape();
  const auto size = [&] { return kGemmSizes[dice.bits() % std::size(kGemmSizes)]; };
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(dice.bits() % n); };
  do {
    p.m = size();
    p.n = size();
    p.k = size();
  } while (rounded_up(p.m, shape.m) * rounded_up(p.n, shape.n) * rounded_up(p.k, shape.k) >
           (full() ? kFullWgmmaWork : kWgmmaWork));
  p.type = one_in(dice, 2) ? ElementType::f16 : ElementType::bf16;
  p.c = static_cast<ElementType>(dice.bits() % 3);
  p.transpose_a = one_in(dice, 2);
  p.transpose_b = one_in(dice, 2);
  p.lda = rounded_up(p.row_a(), 8) + 8 * (dice.bits() % 2);
  p.ldb = rounded_up(p.row_b(), 8) + 8 * (dice.bits() % 2);
  p.ldc = p.n + dice.bits() % 2 * 3;
  p.scaled = one_in(dice, 3);
  p.bias = one_in(dice, 3);
  p.residual = one_in(dice, 3);
  p.activation = static_cast<GemmActivation>(one_in(dice, 3) ? dice.bits() % 4 : 0);
  p.c_alignment = 16u >> (dice.bits() % 4);
  kernel.stages = 2 + below(kernel.tile == WgmmaTile::t128x256x64 ? 3 : 5);
  kernel.cluster = 1 + below(2);
  if (kernel.steps() % kernel.stages == 0 && one_in(dice, 2)) {
    kernel.blocks = kernel.cluster * (1 + below(2));
    kernel.stream_k = one_in(dice, 2);
  }
  if (one_in(dice, 6)) {
    p.batch = 2;
    if (one_in(dice, 2)) p.stride_a = rounded_up(p.elements_a(), 8);
    if (one_in(dice, 2)) p.stride_b = rounded_up(p.elements_b(), 8);
  }
  return kernel;
}

std::vector<std::uint64_t> wgmma_values(const GemmWgmma& kernel) {
  std::vector<std::uint64_t> values(kDescription<GemmWgmma>.parameters.size());
  kDescription<GemmWgmma>.values_of(&kernel, values.data());
  return values;
}

}  // namespace

TEST_CASE("gemm_wgmma is within its bound on the grid, without a finding") {
  const Rig rig;
  Dice dice(seed());
  const int points = kSanitized ? 1 : count(3, 500);
  double worst = 0;
  for (int i = 0; i < points; ++i) {
    const GemmWgmma kernel = drawn(dice);
    const Verification result =
        verify(rig.launcher, rig.context, kDescription<GemmWgmma>, wgmma_values(kernel),
               {.seed = static_cast<std::uint64_t>(i),
                .offset = static_cast<std::uint32_t>(dice.bits() % 2),
                .in_place = one_in(dice, 3)});
    INFO(result.shape << ", seed " << seed() << ": " << result.error_text() << result.first_wrong
                      << (result.findings.empty() ? "" : result.findings[0]));
    CHECK(result.ok());
    worst = std::max(worst, result.worst_share);
  }
  WARN("gemm_wgmma: " << points << " points, largest error / bound " << worst);
  CHECK(worst > 0);
}

namespace {

struct WgmmaMatrices {
  std::vector<std::uint16_t> a, b;
};

// C of a problem without an epilogue, of f16 matrices.
std::vector<float> product(const Rig& rig, const GemmWgmma& kernel, const WgmmaMatrices& in) {
  const GemmProblem& p = kernel.problem;
  const Buffer<f16> a(rig.context, in.a);
  const Buffer<f16> b(rig.context, in.b);
  const Buffer<f32> c(rig.context, std::vector<float>(p.elements_c(), 7.0f));
  rig.launcher.launch(kernel, {.c = c, .a = a, .b = b}, rig.stream);
  rig.stream.synchronize();
  return read(c);
}

// Element (row, term) of A, and (term, column) of B, by the problem's transpositions.
std::size_t at_a(const GemmProblem& p, std::uint32_t row, std::uint32_t term) {
  return p.transpose_a ? term * p.pitch_a() + row : row * p.pitch_a() + term;
}
std::size_t at_b(const GemmProblem& p, std::uint32_t term, std::uint32_t column) {
  return p.transpose_b ? column * p.pitch_b() + term : term * p.pitch_b() + column;
}

WgmmaMatrices small_integers(const GemmProblem& p) {
  WgmmaMatrices in;
  for (std::uint32_t i = 0; i < p.elements_a(); ++i)
    in.a.push_back(float_to_f16(static_cast<float>(static_cast<int>(i * 7 % 17) - 8)));
  for (std::uint32_t i = 0; i < p.elements_b(); ++i)
    in.b.push_back(float_to_f16(static_cast<float>(static_cast<int>(i * 5 % 19) - 9)));
  return in;
}

GemmWgmma integer_kernel(bool ta, bool tb) {
  GemmWgmma kernel;
  kernel.problem = {
      .m = 129, .n = 72, .k = 136, .transpose_a = ta, .transpose_b = tb, .lda = 136, .ldb = 136};
  kernel.tile = WgmmaTile::t128x128x64;
  kernel.stages = 2;
  return kernel;
}

}  // namespace

TEST_CASE("gemm_wgmma: products of small integers are exact, in every transposition") {
  const Rig rig;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const GemmWgmma kernel = integer_kernel(ta, tb);
      const GemmProblem& p = kernel.problem;
      const WgmmaMatrices in = small_integers(p);
      const std::vector<float> got = product(rig, kernel, in);
      std::size_t wrong = 0;
      for (std::uint32_t i = 0; i < p.m; ++i) {
        for (std::uint32_t j = 0; j < p.n; ++j) {
          float sum = 0;  // exact: integers below 2^24
          for (std::uint32_t t = 0; t < p.k; ++t)
            sum += f16_to_float(in.a[at_a(p, i, t)]) * f16_to_float(in.b[at_b(p, t, j)]);
          wrong += got[i * p.n + j] == sum ? 0 : 1;
        }
      }
      INFO((ta ? "t" : "n") << (tb ? "t" : "n"));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("gemm_wgmma: a NaN or an infinity reaches exactly the outputs of its row or column") {
  const Rig rig;
  const GemmWgmma kernel = integer_kernel(false, true);
  const GemmProblem& p = kernel.problem;
  const WgmmaMatrices in = small_integers(p);
  const std::vector<float> plain = product(rig, kernel, in);
  const std::uint32_t row = 128, column = 71;
  for (const float special :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const std::uint32_t term : {0u, 135u, 63u, 64u}) {
      // Every day the first and the last term.
      if (!full() && (term == 63 || term == 64)) continue;
      WgmmaMatrices changed = in;
      // Infinity times infinity: no factor of the row or column is 0 or of another sign.
      for (std::uint32_t i = 0; i < p.m; ++i)
        changed.a[at_a(p, i, term)] = float_to_f16(i == row ? special : 1.0f);
      for (std::uint32_t j = 0; j < p.n; ++j)
        changed.b[at_b(p, term, j)] = float_to_f16(j == column ? special : 1.0f);
      const std::vector<float> got = product(rig, kernel, changed);
      std::size_t wrong = 0;
      for (std::uint32_t i = 0; i < p.m; ++i) {
        for (std::uint32_t j = 0; j < p.n; ++j) {
          const float c = got[i * p.n + j];
          const bool reached = i == row || j == column;
          wrong += (reached ? !std::isfinite(c) && std::isnan(c) == std::isnan(special)
                            : std::isfinite(c))
                       ? 0
                       : 1;
        }
      }
      INFO("term " << term << ", " << special);
      CHECK(wrong == 0);
    }
  }
  CHECK(std::all_of(plain.begin(), plain.end(), [](float c) { return std::isfinite(c); }));
}

TEST_CASE("gemm_wgmma: one result in every schedule, no findings, no bank conflicts") {
  for (const auto& [cluster, stream_k] :
       {std::pair{1u, false}, std::pair{2u, false}, std::pair{1u, true}, std::pair{2u, true}}) {
    // Every day clusters without stream-K and the other way round.
    if (!full() && stream_k == (cluster == 2)) continue;
    const Rig rig;
    Observed observed(rig);
    GemmWgmma kernel;
    kernel.problem = {.m = 136,
                      .n = 136,
                      .k = 256,
                      .transpose_a = cluster == 2,
                      .transpose_b = cluster == 2,
                      .lda = cluster == 2 ? 136u : 256u};
    kernel.tile = WgmmaTile::t128x128x64;
    kernel.stages = 2;
    kernel.cluster = kernel.blocks = cluster;
    if (stream_k) {
      // Three tiles, or pairs of them, for two blocks or clusters: six steps each.
      kernel.stream_k = true;
      kernel.blocks = 2 * cluster;
      kernel.problem.m = 128 * (3 * cluster - 1) + 8;
      kernel.problem.n = 72;
      kernel.problem.lda = cluster == 2 ? kernel.problem.m : 256u;
    }
    const WgmmaMatrices in = small_integers(kernel.problem);
    std::vector<float> first;
    const int schedules = count(2, 20);
    for (int i = 0; i < schedules; ++i) {
      observed.schedule(static_cast<std::uint64_t>(i));
      const std::vector<float> c = product(rig, kernel, in);
      if (i == 0) first = c;
      INFO("clusters of " << cluster << (stream_k ? ", stream-K" : "") << ", schedule " << i << " "
                          << observed.findings);
      CHECK(observed.findings.empty());
      CHECK(std::memcmp(c.data(), first.data(), 4 * c.size()) == 0);
    }
    std::uint64_t conflicts = 0;
    for (const emulator::LineCounters& line : observed.lines)
      conflicts += line.shared.bank_conflicts;
    CHECK(conflicts == 0);
  }
}

namespace {

std::vector<emulator::LineCounters> counted(const GemmWgmma& kernel) {
  const Rig rig;
  Observed observed(rig);
  observed.schedule(0);
  static_cast<void>(product(rig, kernel, small_integers(kernel.problem)));
  CHECK(observed.findings.empty());
  return observed.lines;
}

struct ConsumerCounts {
  std::uint64_t products = 0, polls = 0, others = 0;
};

// What one more round of the ring adds: the code differs in the number of rounds alone. The
// producer is one lane. A wait that fails is tried again, which depends on the copies.
ConsumerCounts of_a_round(GemmWgmma kernel) {
  kernel.problem.k = 64 * (1 + kernel.stages * 2);
  const std::vector<emulator::LineCounters> before = counted(kernel);
  kernel.problem.k += 64 * kernel.stages;
  const std::vector<emulator::LineCounters> after = counted(kernel);
  REQUIRE(before.size() == after.size());
  const std::uint64_t steps = std::uint64_t{8} * kernel.stages * kernel.tiles();  // of warps
  ConsumerCounts counts;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const emulator::LineCounters& line = after[i];
    REQUIRE(line.opcode == before[i].opcode);
    if (line.thread_executions == line.executions) continue;
    const std::uint64_t more = line.executions - before[i].executions;
    (line.opcode.starts_with("wgmma.mma_async")     ? counts.products
     : line.opcode.starts_with("mbarrier.try_wait") ? counts.polls
                                                    : counts.others) += more;
  }
  // A poll and its branch: those that fail are not counted.
  const std::uint64_t failed = counts.polls - std::min(counts.polls, steps);
  counts.polls -= failed;
  counts.others -= failed;
  return counts;
}

}  // namespace

TEST_CASE("gemm_wgmma: at most 6 other instructions of the consumers for each product") {
  std::printf("executions of a consumer warp for each wgmma, by tile and cluster\n");
  for (const WgmmaTile tile : {WgmmaTile::t128x256x64, WgmmaTile::t128x128x64}) {
    for (const std::uint32_t cluster : {1u, 2u}) {
      // Every day the larger tile in clusters.
      if (!full() && (tile != WgmmaTile::t128x256x64 || cluster != 2)) continue;
      GemmWgmma kernel;
      kernel.tile = tile;
      kernel.cluster = cluster;
      kernel.stages = 4;
      kernel.problem = {.m = 8, .n = 8, .k = 64};
      const ConsumerCounts counts = of_a_round(kernel);
      const auto products = static_cast<double>(counts.products);
      const double share = static_cast<double>(counts.polls + counts.others) / products;
      std::printf("%s, clusters of %u: %.2f (of 4 products %.2f waits, %.2f others)\n",
                  std::string(kernel.shape().name).c_str(), cluster, share,
                  4 * static_cast<double>(counts.polls) / products,
                  4 * static_cast<double>(counts.others) / products);
      CHECK(counts.products == std::uint64_t{8} * 4 * 4 * kernel.tiles());
      CHECK(share > 2);
      CHECK(share <= 6);
    }
  }
}

namespace {

template <class Kernel>
std::string refusal(void (*change)(Kernel&), std::string_view target = "sm_90a") {
  Kernel kernel;
  change(kernel);
  try {
    static_cast<void>(kernel.build(ptx::target(target)));
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Build);
    CHECK(error.kernel == kernel_name<Kernel>);
    return error.code + ": " + error.message;
  }
  return "accepted";
}
std::string refused(void (*change)(GemmWgmma&), std::string_view target = "sm_90a") {
  return refusal(change, target);
}

}  // namespace

TEST_CASE("gemm_wgmma: what tensor maps and wgmma cannot take is refused by name") {
  CHECK(refused([](GemmWgmma&) {}, "sm_90a") == "accepted");
  for (const char* target : {"sm_80", "sm_90", "sm_100a"}) {
    CHECK(refused([](GemmWgmma&) {}, target) == "target-lacks: " + std::string(target) +
                                                    " has no wgmma; sm_90a alone has it: take "
                                                    "gemm_mma");
  }
  CHECK(refused([](GemmWgmma& g) { g.problem.lda = 516; }) ==
        "bad-problem: lda is 516 elements; tensor maps need rows of a multiple of 16 bytes below "
        "2^40, 8 elements: pad them, or take gemm_mma");
  CHECK(refused([](GemmWgmma& g) { g.problem.n = 500; }) ==
        "bad-problem: ldb is 500 elements; tensor maps need rows of a multiple of 16 bytes below "
        "2^40, 8 elements: pad them, or take gemm_mma");
  CHECK(refused([](GemmWgmma& g) { g.problem.stride_b = 262145; }) ==
        "bad-problem: stride_b is 262145 elements; tensor maps need matrices of a multiple of 16 "
        "bytes below 2^40, 8 elements: pad them, or take gemm_mma");
  CHECK(refused([](GemmWgmma& g) { g.problem.alignment = 8; }) ==
        "bad-problem: alignment is 8 B; tensor maps need A and B aligned to 16: take gemm_mma");
  CHECK(refused([](GemmWgmma& g) { g.problem.type = ElementType::f32; }) ==
        "bad-problem: type is f32; gemm_wgmma multiplies f16, bf16 and e4m3: take gemm_tiled, or "
        "gemm_mma "
        "for products as tf32");
  CHECK(refused([](GemmWgmma& g) { g.stages = 7; }) == "bad-plan: stages is 7; it may be 2 to 6");
  CHECK(refused([](GemmWgmma& g) { g.cluster = 4; }) == "bad-plan: cluster is 4; it may be 1 or 2");
  CHECK(refused([](GemmWgmma& g) {
          g.cluster = 2;
          g.blocks = 3;
        }) ==
        "bad-plan: blocks is 3 with a cluster of 2 and 8 steps in 4 stages; it may be 0, or a "
        "multiple of the cluster up to 65534 where the stages divide the steps");
  CHECK(
      refused([](GemmWgmma& g) { g.stages = 6; }) ==
      "target-lacks: 6 stages of tile 128x256x64 are 315488 B of shared memory; a block on sm_90a "
      "may have 232448 B: take fewer stages or a smaller tile");
}

TEST_CASE("gemm_wgmma: an operand that is not aligned is refused at the launch") {
  const Rig rig;
  GemmWgmma kernel;
  kernel.problem = {.m = 8, .n = 8, .k = 8};
  const Buffer<f16> a(rig.context, 80), b(rig.context, 80);
  const Buffer<f32> c(rig.context, 64);
  const Error error = error_of([&] {
    rig.launcher.launch(kernel, {.c = c, .a = DeviceSpan<f16>(a).subspan(1, 64), .b = b},
                        rig.stream);
  });
  CHECK(error.code == "misaligned");
  CHECK(error.message.starts_with("a is at "));
  CHECK(error.message.find("16") != std::string::npos);
}

TEST_CASE("a plan of gemm_wgmma keeps its tensor maps, and a driver without them is refused") {
  const Rig rig;
  const GemmWgmma kernel = integer_kernel(false, false);
  const WgmmaMatrices in = small_integers(kernel.problem);
  const std::vector<float> want = product(rig, kernel, in);
  const Buffer<f16> a(rig.context, in.a), b(rig.context, in.b);
  const Buffer<f32> c(rig.context, std::vector<float>(want.size(), 7.0f));
  const LaunchPlan plan = rig.launcher.plan(kernel, {.c = c, .a = a, .b = b}, rig.stream);
  plan.launch();
  rig.stream.synchronize();
  CHECK(read(c) == want);

  driver::Table without = driver::emulated::table();
  without.tensor_map_encode_tiled = nullptr;
  const Rig older(plain_options(), without);
  const Error error = error_of([&] { static_cast<void>(product(older, kernel, in)); });
  CHECK(error.code == "driver-lacks");
  CHECK(error.message ==
        "gemm_wgmma has tensor maps among its arguments, and this driver has no "
        "cuTensorMapEncodeTiled; install one of CUDA 12.0 or newer, or launch a kernel without "
        "tensor maps");
}

TEST_CASE("gemm_wgmma assembles without spills, and its products are not serialised") {
  const Assembler assembler(Settings::from_environment());
  if (!assembler.available())
    return test::skip("no assembler: install the CUDA 13 toolkit's nvJitLink or ptxas");
  for (const std::uint32_t cluster : {2u, 1u}) {
    if (cluster == 1 && !full()) break;
    GemmWgmma kernel;
    kernel.cluster = cluster;
    // Every day the smaller tile, whose epilogue is half as long.
    kernel.tile = full() ? WgmmaTile::t128x256x64 : WgmmaTile::t128x128x64;
    AssembleOptions options;
    options.target = "sm_90a";
    const Assembly result = assembler.assemble(kernel.build(ptx::target("sm_90a")).ptx(), options);
    INFO(result.log);
    CHECK(result.spill_stores == 0);
    CHECK(result.spill_loads == 0);
    CHECK(result.registers <= 168);  // of 384 threads
    CHECK(result.log.find("serialized") == std::string::npos);
  }
}

// gemm_wmma -----------------------------------------------------------------------------------

TEST_CASE("gemm_wmma passes the gates; without any of its barriers it does not") {
  for (const std::uint32_t tile : {16u, 32u, 64u}) {
    GemmWmma kernel;
    kernel.tile = tile;
    kernel.problem = {.m = 100, .n = 90, .k = 200, .transpose_b = tile == 16};
    const ptx::Module module = kernel.build(ptx::target("sm_90")).module();
    for (const Finding& finding : gates::run(module)) {
      INFO(to_text(finding));
      CHECK(finding.severity == Severity::Note);
    }
    const std::string text = ptx::print(module);
    std::size_t barriers = 0;
    for (std::size_t at = text.find("bar."); at != std::string::npos;
         at = text.find("bar.", at + 1)) {
      std::string without = text;
      const std::size_t end = text.find(';', at);
      without.erase(at, end - at + 1);
      INFO("tile " << tile << ", without " << text.substr(at, end - at));
      // One warp alone has one barrier too many, between the loop and the outputs.
      const bool found = !gates::shared_race(ptx::parse(without)).empty();
      barriers += found ? 1 : 0;
    }
    CHECK(barriers >= 4);
  }
}

TEST_CASE("gemm_wmma: what it cannot be is refused by name") {
  CHECK(refusal<GemmWmma>([](GemmWmma& g) { g.problem.type = ElementType::f32; }, "sm_90") ==
        "bad-plan: type is f32; wmma multiplies f16 or bf16 here: take gemm_tiled for f32");
  CHECK(refusal<GemmWmma>([](GemmWmma& g) { g.problem.type = ElementType::bf16; }, "sm_75") ==
        "target-lacks: type is bf16, which the tensor cores of sm_75 do not have; they need sm_80 "
        "or newer: take f16");
}
