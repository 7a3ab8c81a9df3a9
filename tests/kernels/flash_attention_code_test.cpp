// tests/kernels/flash_attention_code_test.cpp - code of flash attention: gates, conflicts,
// registers
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>

#include "flash_run.hpp"
#include "ptxgen/analysis.hpp"
#include "ptxgen/check.hpp"
#include "ptxgen/kernels/attention/flash_tensor_core.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

template <class K>
K tile_kernel(std::uint32_t head_size, std::uint64_t tile, ElementType cache = ElementType::f16) {
  K kernel;
  kernel.tile = static_cast<decltype(kernel.tile)>(tile);
  FlashProblem& p = kernel.problem;
  p.kv_heads = 1;
  p.head_size = head_size;
  p.type = p.cache = cache;
  p.queries = 70;
  p.keys = 150;
  return kernel;
}

template <class K>
std::string refusal(void (*change)(K&), std::string_view target = "sm_90") {
  K kernel;
  change(kernel);
  try {
    static_cast<void>(kernel.build(ptx::target(target)));
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Build);
    CHECK(error.kernel == kDescription<K>.name);
    return error.code + ": " + error.message;
  }
  return "accepted";
}

}  // namespace

#define BOTH_KERNELS FlashAttention, FlashAttentionTensorCore

TEMPLATE_TEST_CASE("flash attention: the same bits in every schedule, without bank conflicts", "",
                   BOTH_KERNELS) {
  const std::uint64_t tiles = full() ? 4 : 2;
  for (std::uint64_t tile = 1; tile <= tiles; ++tile) {
    for (const std::uint32_t size : {16u, 32u, 48u, 64u, 80u, 96u, 128u, 256u}) {
      if (!full() && size != (tile == 1 ? 80 : 64)) continue;
      if (size > (tile == 1 ? 64 : 128) && tile < 4) continue;
      const auto kernel = tile_kernel<TestType>(size, tile);
      INFO(kDescription<TestType>.name << ", tile " << kernel.shape().name << ", head_size "
                                       << size);
      FlashRunner runner(kernel, normal_data(kernel.problem, size));
      std::vector<std::byte> first;
      for (int i = 0; i < count(2, 20); ++i) {
        emulator::Options options;
        options.seed = static_cast<std::uint64_t>(i);
        const FlashOutcome outcome = runner.run(options);
        REQUIRE(outcome.findings == "");
        if (i == 0) first = outcome.bits;
        CHECK((outcome.bits == first));
        const emulator::Counters& counters = outcome.counters;
        CHECK(counters.shared_load.bank_conflicts + counters.shared_store.bank_conflicts == 0);
        std::uint64_t more = 0;
        for (const emulator::LineCounters& line : counters.lines) {
          more += line.shared.bank_conflicts;
        }
        CHECK(more == 0);
        CHECK(counters.local_load.requests + counters.local_store.requests == 0);
      }
    }
  }
}

TEMPLATE_TEST_CASE("flash attention: gates have nothing to report on any code of it", "",
                   BOTH_KERNELS) {
  std::size_t checked = 0;
  for (const std::uint32_t size : {32u, 80u, 128u, 256u}) {
    for (const bool causal : {true, false}) {
      for (const bool paged : {true, false}) {
        for (const bool variable : {true, false}) {
          if (!full() && ++checked % 5 != 0) continue;
          auto kernel = tile_kernel<TestType>(size, 0);
          kernel.problem.causal = causal;
          kernel.problem.page = kernel.problem.pages = paged ? 16 : 0;
          kernel.problem.variable = variable;
          kernel.problem.tokens_first = causal;
          INFO("head_size " << size << (causal ? " causal" : "") << (paged ? " paged" : "")
                            << (variable ? " variable" : ""));
          const ptx::Module module = kernel.build(ptx::target("sm_90")).module();
          CHECK(gates::barrier_safety(module).empty());
          CHECK(gates::shared_race(module).empty());
          CHECK(gates::analyze(module).empty());
        }
      }
    }
  }
}

TEST_CASE("flash attention: on sm_75 through registers, with products of 8 terms") {
  auto kernel = tile_kernel<FlashAttentionTensorCore>(48, 3);
  for (const ElementType type : {ElementType::f16, ElementType::f32}) {
    kernel.problem.type = type;
    const FlashData data = normal_data(kernel.problem, 3);
    const FlashOutcome outcome = FlashRunner(kernel, data, "sm_75").run();
    CHECK(outcome.findings == "");
    CHECK(nmse_of(outcome.out, exact_attention(kernel.problem, as_stored(kernel.problem, data))) <=
          1e-5);
  }
}

TEMPLATE_TEST_CASE("flash attention: no spills", "", BOTH_KERNELS) {
  const Assembler assembler(Settings::from_environment());
  if (!assembler.available())
    return test::skip("no assembler: install the CUDA 13 toolkit's nvJitLink or ptxas");
  const ParameterInfo& tiles =
      kDescription<TestType>.parameters[parameter_index(kDescription<TestType>, "tile")];
  std::uint32_t largest = 0;
  for (std::uint64_t tile = 1; tile <= tiles.max; ++tile) {
    for (const std::uint32_t size : {64u, 80u, 112u, 128u, 256u}) {
      for (const std::string_view target : {"sm_80", "sm_90", "sm_120"}) {
        for (const bool options : {false, true}) {
          // Every day one: the catalog's tests assemble the default as well.
          if (!full() && (tile != tiles.max || size != 64 || target != "sm_90" || !options))
            continue;
          auto kernel = tile_kernel<TestType>(size, tile);
          kernel.problem.variable = kernel.problem.tokens_first = options;
          if (options) kernel.problem.page = kernel.problem.pages = 64;
          INFO(kernel.shape().name << ", head_size " << size << ", " << target
                                   << (options ? ", with options" : ""));
          try {
            check(kernel, ptx::target(target));
          } catch (const Error&) {
            continue;  // more than the target, or a thread, has
          }
          AssembleOptions how;
          how.target = target;
          how.tool = AssemblerTool::FewestRegisters;
          const Assembly result = assembler.assemble(kernel.build(ptx::target(target)).ptx(), how);
          CHECK(result.spill_stores + result.spill_loads == 0);
          CHECK(result.kernels[0].stack == 0);
          largest = std::max(largest, result.registers);
        }
      }
    }
  }
  std::printf("%s: no spills, at most %u registers\n",
              std::string(kDescription<TestType>.name).c_str(), largest);
  CHECK(largest > 0);
}

namespace {

struct LoopCounts {
  std::size_t products = 0, fragments = 0, copies = 0, powers = 0, others = 0;
};

// Instructions of the loop over keys, without those of tiles at an edge.
LoopCounts loop_of(const ptx::Module& module) {
  const ptx::Function& function = module.functions[0];
  const analysis::Cfg cfg(function);
  LoopCounts counts;
  std::size_t masks = 0;
  for (std::uint32_t loop = 0; loop < cfg.loops().loops().size(); ++loop) {
    for (const std::uint32_t node : cfg.loops().nodes(loop)) {
      const analysis::Block& block = cfg.blocks()[node];
      const auto is_mask = [](const ptx::Instruction& s) {
        return s.is(ptx::Op::mov) && s.guard.present();
      };
      const auto body = std::span(function.body).subspan(block.first, block.end - block.first);
      const bool edge = std::any_of(body.begin(), body.end(), is_mask);
      for (const ptx::Instruction& s : body) {
        if (s.kind != ptx::StatementKind::Instruction) continue;
        const std::string_view mnemonic = ptx::info(s.op).mnemonic;
        const bool copy = s.op == ptx::Op::cp_async || s.op == ptx::Op::cp_async_src_size;
        ++(edge                     ? masks
           : mnemonic == "mma"      ? counts.products
           : mnemonic == "ldmatrix" ? counts.fragments
           : mnemonic == "ex2"      ? counts.powers
           : copy                   ? counts.copies
                                    : counts.others);
      }
    }
  }
  CHECK(masks != 0);
  return counts;
}

}  // namespace

TEST_CASE("flash attention: instructions of the loop for each product") {
  for (const auto& [tile, size, limit] : {std::tuple{1, 64, 4.6}, std::tuple{2, 128, 3.7},
                                          std::tuple{3, 128, 3.4}, std::tuple{4, 256, 3.2}}) {
    const auto kernel = tile_kernel<FlashAttentionTensorCore>(static_cast<std::uint32_t>(size),
                                                              static_cast<std::uint64_t>(tile));
    const LoopCounts loop = loop_of(kernel.build(ptx::target("sm_90")).module());
    const std::size_t each = kernel.shape().warp_queries() / 16 * kernel.shape().keys / 8;
    CHECK(loop.products == 4 * each * static_cast<std::size_t>(size) / 16);  // of two steps
    const std::size_t rest = loop.fragments + loop.copies + loop.powers + loop.others;
    const double share = static_cast<double>(rest) / static_cast<double>(loop.products);
    std::printf(
        "%s, head_size %d: %zu mma, %zu ldmatrix, %zu cp.async, %zu ex2, %zu more: %.2f "
        "for each mma\n",
        std::string(kernel.shape().name).c_str(), size, loop.products, loop.fragments, loop.copies,
        loop.powers, loop.others, share);
    CHECK(share <= limit);
  }
}

TEST_CASE("what flash attention cannot be is refused by name") {
  using F = FlashAttention;
  using T = FlashAttentionTensorCore;
  CHECK(refusal<F>([](F& k) { k.problem.max_seq = 100; }) ==
        "bad-parameter: max_seq is 100; it may be 0, or at least `keys`: the cache holds all of "
        "them");
  CHECK(refusal<F>([](F& k) {
          k.problem.causal = false;
          k.problem.window = 5;
        }) ==
        "bad-parameter: window is 5; it counts back from the last key of `causal`: set causal, or "
        "leave it 0");
  CHECK(refusal<F>([](F& k) { k.problem.head_size = 72; }) ==
        "bad-parameter: head_size is 72, not a multiple of 16");
  CHECK(refusal<F>([](F& k) {
          k.problem.head_size = 80;
          k.problem.cache = ElementType::q8_0;
        }) ==
        "bad-parameter: head_size is 80; with a cache of q8_0, whose blocks have 32 values, it is "
        "a multiple of 32");
  CHECK(refusal<F>([](F& k) { k.problem.page = 24; }) ==
        "bad-parameter: page is 24; it may be 0 or a power of two");
  CHECK(refusal<F>([](F& k) {
          k.problem.page = k.problem.pages = 16;
          k.problem.shared_cache = true;
        }) ==
        "bad-parameter: page is 16; with a shared_cache it is 0: rows of the table may have the "
        "same pages");
  CHECK(refusal<F>(
            [](F& k) {
              k.problem.head_size = 128;
              k.tile = FlashTile::t64x64;
            },
            "sm_89") ==
        "target-lacks: tile 64x64 with head_size 128 is 118784 B of shared memory; a block on "
        "sm_89 may have 101376 B: take a smaller tile, or auto");
  CHECK(refusal<T>([](T& k) { k.problem.cache = ElementType::f32; }) ==
        "bad-parameter: cache is f32; tensor cores multiply f16 or bf16: take one of them, or the "
        "kernel flash_attention");
  CHECK(refusal<T>([](T& k) { k.problem.cache = ElementType::bf16; }, "sm_75") ==
        "target-lacks: cache is bf16, which the tensor cores of sm_75 do not have; they need sm_80 "
        "or newer: take f16");
  CHECK(refusal<T>([](T& k) {
          k.problem.head_size = 128;
          k.tile = FlashMmaTile::t128x64;
        }) ==
        "bad-parameter: tile 128x64 with head_size 128: a thread has registers for at most 112 "
        "elements of a head: take a smaller tile, or auto");
  CHECK(refusal<T>([](T& k) { k.problem.head_size = 128; }, "sm_75") ==
        "target-lacks: tile 128x32 with head_size 128 is 69632 B of shared memory; a block on "
        "sm_75 may have 65536 B: take a smaller tile");
  const auto refused = [](const F& kernel, const FlashOperands& operands) -> std::string {
    try {
      Describe<F>::check(kernel, operands);
    } catch (const Error& error) {
      CHECK(error.stage == Stage::Launch);
      return error.message;
    }
    return "accepted";
  };
  FlashOperands negative;
  negative.scale = -1;
  CHECK(refused(F{}, negative) == "scale is -1; it may be positive, or 0 for 1 / sqrt(head_size)");
  F paged;
  paged.problem.page = 16;
  CHECK(refused(paged, {}) ==
        "pages is 0 and page 16; pages, what k and v have, is 0 exactly if page is");
}
