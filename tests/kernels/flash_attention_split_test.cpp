// tests/kernels/flash_attention_split_test.cpp - keys divided among blocks, and kernels planned
#include <catch2/catch.hpp>
#include <cstdio>

#include "flash_run.hpp"
#include "ptxgen/check.hpp"
#include "ptxgen/kernels/attention/flash_predict.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

FlashAttentionTensorCore split_kernel(std::uint32_t queries, std::uint32_t keys,
                                      std::uint32_t splits) {
  FlashAttentionTensorCore kernel;
  FlashProblem& p = kernel.problem;
  p.kv_heads = 1;
  p.group = 2;
  p.head_size = 32;
  p.queries = queries;
  p.keys = keys;
  p.type = ElementType::f32;
  p.cache = ElementType::f16;
  kernel.tile = FlashMmaTile::t64x32;
  kernel.splits = splits;
  return kernel;
}

double error_of(const FlashAttentionTensorCore& kernel, const FlashData& data) {
  const FlashOutcome outcome = FlashRunner(kernel, data).run();
  CHECK(outcome.findings == "");
  return nmse_of(outcome.out, exact_attention(kernel.problem, as_stored(kernel.problem, data)));
}

}  // namespace

TEST_CASE("flash attention, split: few queries of many keys, parts without keys, windows") {
  for (const std::uint32_t queries : {1u, 5u, 70u}) {
    for (const std::uint32_t keys : {1u, 33u, 250u}) {
      for (const std::uint32_t splits : {2u, 3u, 64u}) {
        if (!full() && !(queries == 5 && keys == 250 && splits == 3) &&
            !(queries == 70 && keys == 33 && splits == 2)) {
          continue;
        }
        auto kernel = split_kernel(queries, keys, splits);
        kernel.problem.window = queries == 5 ? 100 : 0;
        kernel.problem.tokens_first = keys == 33;
        INFO("queries " << queries << ", keys " << keys << ", splits " << splits);
        CHECK(error_of(kernel, normal_data(kernel.problem, queries + keys + splits)) <= 1e-5);
      }
    }
  }
}

TEST_CASE("flash attention, split: rows of other lengths and pages; a row without keys is 0") {
  auto kernel = split_kernel(3, 140, 4);
  FlashProblem& p = kernel.problem;
  p.rows = 3;
  p.variable = true;
  p.page = 16;
  p.pages = 40;
  FlashData data = normal_data(p, 8);
  data.key_lengths = {140, 0, 40};
  data.query_lengths = {3, 3, 1};
  CHECK(error_of(kernel, data) <= 1e-5);
  const std::vector<double> out = FlashRunner(kernel, data).run().out;
  for (std::size_t i = query_place(p, 1, 0, 0); i < query_place(p, 2, 0, 0); ++i) {
    CHECK(out[i] == 0);
  }
}

TEST_CASE("flash attention, split: the same bits in every schedule, and gates find nothing") {
  const auto kernel = split_kernel(5, 200, 4);
  FlashRunner runner(kernel, normal_data(kernel.problem, 4));
  std::vector<std::byte> first;
  for (int i = 0; i < count(2, 20); ++i) {
    emulator::Options options;
    options.seed = static_cast<std::uint64_t>(i);
    const FlashOutcome outcome = runner.run(options);
    REQUIRE(outcome.findings == "");
    if (i == 0) first = outcome.bits;
    CHECK((outcome.bits == first));
  }
  const ptx::Module module = kernel.build(ptx::target("sm_90")).module();
  CHECK(gates::barrier_safety(module).empty());
  CHECK(gates::shared_race(module).empty());
  // The workspace has a place for each thread of the grid, which nothing compares with a bound.
  for (const Finding& finding : gates::analyze(module)) CHECK(finding.rule == "unchecked-bounds");
}

namespace {

FlashProblem decode_layer(std::uint32_t queries, std::uint32_t keys) {
  FlashProblem p;
  p.kv_heads = 8;
  p.group = 4;
  p.head_size = 128;
  p.queries = queries;
  p.keys = keys;
  p.type = p.cache = ElementType::f16;
  return p;
}

}  // namespace

TEST_CASE("flash attention, planned: few queries of a long cache are split, prompts are not") {
  std::printf("| queries | keys | GPU | plan | us | without splits |\n");
  for (const char* name : {"h100", "a100", "rtx4090"}) {
    const ptx::Gpu& gpu = *ptx::find_gpu(name);
    for (const std::uint32_t queries : {4u, 16u, 4096u}) {
      const FlashProblem problem = decode_layer(queries, 16384);
      const FlashPlan plan = plan_flash(problem, gpu);
      const double us = std::visit([&](const auto& k) { return predict(k, gpu).us; }, plan);
      double unsplit = INFINITY;
      for (const auto tile : {FlashMmaTile::t128x32, FlashMmaTile::t64x64, FlashMmaTile::t64x32}) {
        unsplit = std::min(unsplit, predict(FlashAttentionTensorCore{problem, tile}, gpu).us);
      }
      std::printf("| %u | 16384 | %s | %s | %.1f | %.1f |\n", queries, name, to_text(plan).c_str(),
                  us, unsplit);
      const auto* const split = std::get_if<FlashAttentionTensorCore>(&plan);
      if (queries < 4096) {
        REQUIRE(split != nullptr);
        CHECK(split->splits > 1);
        // A block of 64 queries has at most 32 keys' steps of 32 heads: many SMs are idle.
        CHECK(us < 0.5 * unsplit);
      } else {
        CHECK((split == nullptr || split->splits == 1));
      }
    }
  }
}
