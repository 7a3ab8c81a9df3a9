// tests/kernels/flash_attention_wgmma_test.cpp - flash attention by wgmma
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <map>

#include "launcher/rig.hpp"
#include "ptxgen/check.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/kernels/attention/flash_predict.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

using K = FlashAttentionWgmma;

K kernel_of(std::uint32_t head_size, std::uint32_t queries, std::uint32_t keys,
            ElementType cache = ElementType::f16) {
  K kernel;
  FlashProblem& p = kernel.problem;
  p.kv_heads = 1;
  p.head_size = head_size;
  p.queries = queries;
  p.keys = keys;
  p.type = p.cache = cache;
  return kernel;
}

// Against the reference, element by element within its bound.
Verification verified(const Rig& rig, const K& kernel, std::uint64_t seed) {
  std::vector<std::uint64_t> values(kDescription<K>.parameters.size());
  kDescription<K>.values_of(&kernel, values.data());
  return verify(rig.launcher, rig.context, kDescription<K>, values, {.seed = seed});
}

void check_point(const Rig& rig, const K& kernel, std::uint64_t seed,
                 std::map<ElementType, double>& largest) {
  const Verification result = verified(rig, kernel, seed);
  INFO(result.shape << ": " << result.error_text() << result.first_wrong
                    << (result.findings.empty() ? "" : result.findings[0]));
  CHECK(result.ok());
  CHECK(result.nmse <= (kernel.problem.cache == ElementType::f16 ? 1e-5 : 1e-4));
  largest[kernel.problem.cache] = std::max(largest[kernel.problem.cache], result.nmse);
}

}  // namespace

TEST_CASE("flash_attention_wgmma: lengths, head sizes and GQA are within their bound") {
  const Rig rig;
  std::map<ElementType, double> largest;
  std::uint64_t seed = 0;
  std::size_t points = 0;
  for (const std::uint32_t length : {1u, 16u, 17u, 63u, 64u, 65u, 128u, 130u}) {
    for (const std::uint32_t size : {64u, 128u}) {
      for (const auto& [kv_heads, group] : {std::pair{1u, 1u}, std::pair{2u, 2u}}) {
        for (const bool causal : {true, false}) {
          ++seed;
          // Every day a small point.
          if (!full() && seed != 18) continue;
          K kernel =
              kernel_of(size, length, length, seed % 3 == 0 ? ElementType::bf16 : ElementType::f16);
          FlashProblem& p = kernel.problem;
          kernel.tile = static_cast<FlashWgmmaTile>(seed % 2);
          p.kv_heads = kv_heads;
          p.group = group;
          p.causal = causal;
          p.tokens_first = seed % 4 < 2;
          if (seed % 5 == 0) p.type = ElementType::f32;
          check_point(rig, kernel, seed, largest);
          ++points;
        }
      }
    }
  }
  for (const auto& [type, nmse] : largest) {
    std::printf("flash_attention_wgmma, %s: largest NMSE %.2g of %zu launches\n",
                std::string(to_string(type)).c_str(), nmse, points);
  }
}

TEST_CASE("flash_attention_wgmma: more queries than keys, windows, a cache that is longer") {
  const Rig rig;
  std::map<ElementType, double> largest;
  K kernel = kernel_of(64, 140, 100);
  kernel.tile = FlashWgmmaTile::t128x64;
  check_point(rig, kernel, 1, largest);
  kernel.problem.queries = 20;
  kernel.problem.keys = 300;
  kernel.problem.max_seq = 333;
  kernel.problem.window = 70;
  check_point(rig, kernel, 2, largest);
  if (!full()) return;
  kernel.problem.rows = 2;
  kernel.problem.shared_cache = true;
  check_point(rig, kernel, 3, largest);
}

namespace {

/// Findings and counters of launches under all checks, in a schedule.
struct Observed {
  emulator::Counters counters;
  std::string findings;

  Observed(const Rig& rig, std::uint64_t schedule) : rig_(rig) {
    emulator::Options options = driver::emulated::default_options();
    options.checks = emulator::RuleSet::all();
    options.seed = schedule;
    REQUIRE(driver::emulated::set_launch_options(rig.context.handle(), options) ==
            driver::CUDA_SUCCESS);
    REQUIRE(driver::emulated::observe_launches(rig.context.handle(), report, this) ==
            driver::CUDA_SUCCESS);
  }
  ~Observed() {
    static_cast<void>(driver::emulated::observe_launches(rig_.context.handle(), nullptr, nullptr));
  }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;

 private:
  static void report(void* user, const driver::emulated::LaunchReport& launch) {
    auto& all = *static_cast<Observed*>(user);
    all.counters = launch.result.counters;
    for (const emulator::RunFinding& finding : launch.result.findings) {
      all.findings += emulator::to_text(finding) + "\n";
    }
  }
  const Rig& rig_;
};

}  // namespace

TEST_CASE("flash_attention_wgmma: one result in every schedule, no findings, no bank conflicts") {
  const Rig rig;
  for (const std::uint32_t size : {64u, 128u}) {
    if (!full() && size == 128) continue;
    K kernel = kernel_of(size, 130, 150);
    kernel.tile = FlashWgmmaTile::t128x64;
    for (int i = 0; i < count(2, 20); ++i) {
      const Observed observed(rig, static_cast<std::uint64_t>(i));
      const Verification result = verified(rig, kernel, 7);
      INFO("head_size " << size << ", schedule " << i << " " << observed.findings);
      CHECK(result.ok());
      CHECK(observed.findings.empty());
      std::uint64_t conflicts = 0;
      for (const emulator::LineCounters& line : observed.counters.lines) {
        conflicts += line.shared.bank_conflicts;
      }
      CHECK(conflicts == 0);
    }
  }
}

TEST_CASE("flash_attention_wgmma: gates have nothing to report on any code of it") {
  for (const std::uint32_t size : {64u, 128u}) {
    for (const FlashWgmmaTile tile : {FlashWgmmaTile::t128x128, FlashWgmmaTile::t128x64}) {
      for (const bool causal : {true, false}) {
        if (!full() && (size == 64) != causal) continue;
        K kernel = kernel_of(size, 130, 150);
        kernel.tile = tile;
        kernel.problem.causal = causal;
        const ptx::Module module = kernel.build(ptx::target("sm_90a")).module();
        CHECK(gates::barrier_safety(module).empty());
        CHECK(gates::warpgroup_order(module).empty());
        CHECK(gates::analyze(module).empty());
      }
    }
  }
}

TEST_CASE("flash_attention_wgmma: a barrier too few is a finding") {
  // Consumers that do not wait for the copies read memory that nothing has written, or too soon.
  const K kernel = kernel_of(64, 64, 64);
  const ptx::Module module = kernel.build(ptx::target("sm_90a")).module();
  std::string text = ptx::print(module);
  const std::size_t fence = text.find("wgmma.fence");
  REQUIRE(fence != std::string::npos);
  text.replace(fence, text.find('\n', fence) - fence, "");
  CHECK(!gates::warpgroup_order(ptx::parse(text, "defect.ptx")).empty());
}

TEST_CASE("flash_attention_wgmma: no spills") {
  const Assembler assembler(Settings::from_environment());
  if (!assembler.available())
    return test::skip("no assembler: install the CUDA 13 toolkit's nvJitLink or ptxas");
  for (const std::uint32_t size : {64u, 128u}) {
    for (const FlashWgmmaTile tile : {FlashWgmmaTile::t128x128, FlashWgmmaTile::t128x64}) {
      for (const ElementType type : {ElementType::f16, ElementType::f32}) {
        // Every day a small one: the catalog's tests assemble the default as well.
        const bool small =
            size == 64 && tile == FlashWgmmaTile::t128x64 && type == ElementType::f32;
        if (!full() && !small) continue;
        K kernel = kernel_of(size, 130, 150);
        kernel.tile = tile;
        kernel.problem.type = type;
        AssembleOptions how;
        how.target = "sm_90a";
        how.tool = AssemblerTool::FewestRegisters;
        const Assembly result = assembler.assemble(kernel.build(ptx::target("sm_90a")).ptx(), how);
        INFO(kernel.shape().name << ", head_size " << size << ", " << result.registers
                                 << " registers");
        CHECK(result.spill_stores + result.spill_loads == 0);
        CHECK(result.kernels[0].stack == 0);
      }
    }
  }
}

namespace {

std::string refused(void (*change)(K&), std::string_view target = "sm_90a") {
  K kernel;
  change(kernel);
  try {
    static_cast<void>(kernel.build(ptx::target(target)));
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Build);
    return error.code + ": " + error.message;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("flash_attention_wgmma: what it cannot take is refused by name") {
  CHECK(refused([](K&) {}) == "accepted");
  CHECK(refused([](K&) {}, "sm_90") ==
        "target-lacks: sm_90 has no wgmma; sm_90a alone has it: take flash_attention_tensor_core");
  CHECK(refused([](K& k) { k.problem.cache = ElementType::f32; }) ==
        "bad-parameter: cache is f32; this kernel multiplies f16 or bf16: take "
        "flash_attention_tensor_core");
  CHECK(refused([](K& k) { k.problem.type = ElementType::bf16; }) ==
        "bad-parameter: type is bf16 with a cache of f16; q is of the type of the cache, or f32: "
        "take flash_attention_tensor_core");
  CHECK(refused([](K& k) { k.problem.head_size = 80; }) ==
        "bad-parameter: head_size is 80, not a multiple of 64");
  CHECK(refused([](K& k) { k.problem.variable = true; }) ==
        "bad-parameter: variable is set; tensor maps have one length for all rows: take "
        "flash_attention_tensor_core");
  CHECK(refused([](K& k) { k.problem.page = k.problem.pages = 16; }) ==
        "bad-parameter: page is 16; tensor maps do not follow a table: take "
        "flash_attention_tensor_core");
}

TEST_CASE("flash_attention_wgmma, predicted: 58 % of an H100 with heads of 128, and its band") {
  const ptx::Gpu& gpu = *ptx::find_gpu("h100");
  K kernel = kernel_of(128, 16384, 16384);
  kernel.problem.kv_heads = 16;
  kernel.problem.causal = false;
  const FlashPrediction of = predict(kernel, gpu);
  std::printf(
      "flash_attention_wgmma, 16384 queries and keys, h100: %.1f us, %.0f TFLOP/s, %.1f %% "
      "of the peak, %s\n",
      of.us, of.tflops, 100 * of.share_of_peak, std::string(of.bound_by).c_str());
  CHECK(of.bound_by == "tensor");
  // FlashAttention-3 without overlap within a warpgroup reached 570 and 582 TFLOP/s.
  CHECK((of.share_of_peak > 0.55 && of.share_of_peak < 0.61));
  CHECK(of.error.worst >= 0.4);
  CHECK(std::holds_alternative<K>(plan_flash(kernel.problem, gpu)));
}
