// tests/kernels/flash_attention_prediction_test.cpp - predicted times of flash attention
#include <catch2/catch.hpp>
#include <cstdio>

#include "ptxgen/kernels/attention/flash_predict.hpp"
#include "ptxgen/support/error.hpp"

using namespace ptxgen;

namespace {

// The layer of a model with 32 heads.
FlashProblem layer(std::uint32_t length, bool causal) {
  FlashProblem p;
  p.kv_heads = 8;
  p.group = 4;
  p.head_size = 128;
  p.queries = p.keys = length;
  p.type = p.cache = ElementType::f16;
  p.causal = causal;
  return p;
}

}  // namespace

TEST_CASE(
    "flash attention, predicted: long prompts are bound by the tensor cores, with their band") {
  std::printf("| prompt | GPU | plan | us | TFLOP/s | of the peak | bound by |\n");
  for (const std::uint32_t length : {512u, 4096u, 16384u}) {
    for (const char* name : {"h100", "h200", "a100", "rtx4090"}) {
      const ptx::Gpu& gpu = *ptx::find_gpu(name);
      const FlashPlan plan = plan_flash(layer(length, true), gpu);
      const FlashPrediction of =
          std::visit([&](const auto& kernel) { return predict(kernel, gpu); }, plan);
      std::printf("| %u | %s | %s | %.1f | %.0f | %.1f %% | %s |\n", length, name,
                  to_text(plan).c_str(), of.us, of.tflops, 100 * of.share_of_peak,
                  std::string(of.bound_by).c_str());
      CHECK(of.us >= of.terms.launch + of.terms.tensor + of.terms.exp);
      CHECK(of.error.worst >= 0.4);
      CHECK(of.share_of_peak < 0.9);
      if (length < 16384) continue;
      CHECK(of.bound_by == "tensor");
      // What FlashAttention-2 reaches is within the band.
      if (gpu.name == "a100") CHECK((of.share_of_peak > 0.55 && of.share_of_peak < 0.75));
      if (gpu.name != "h100") continue;
      const FlashAttentionTensorCore by_mma{layer(length, true), FlashMmaTile::t128x32};
      const double share = predict(by_mma, gpu).share_of_peak;
      CHECK((share > 0.35 && share < 0.5));
      CHECK(std::holds_alternative<FlashAttentionWgmma>(plan));
    }
  }
}

TEST_CASE("flash attention, predicted: masks halve the work, windows bound it, f32 is slower") {
  const ptx::Gpu& gpu = *ptx::find_gpu("h200");
  FlashAttentionTensorCore kernel;
  kernel.problem = layer(8192, false);
  const double all = predict(kernel, gpu).us;
  kernel.problem.causal = true;
  const double causal = predict(kernel, gpu).us;
  CHECK(causal < 0.6 * all);
  CHECK(causal > 0.45 * all);
  kernel.problem.window = 256;
  CHECK(predict(kernel, gpu).us < 0.15 * causal);
  FlashAttention plain;
  plain.problem = layer(8192, true);
  const FlashPrediction slow = predict(plain, gpu);
  CHECK(slow.us > 4 * causal);
  CHECK(slow.share_of_peak == 0);
  // One query fills a 128th of its tile, and few SMs.
  kernel.problem = layer(8192, true);
  kernel.problem.queries = 1;
  CHECK(predict(kernel, gpu).share_of_peak < 0.01);
}

TEST_CASE("flash attention, planned: only tiles that the GPU can run") {
  const ptx::Gpu& gpu = *ptx::find_gpu("rtx4090");
  const FlashProblem problem = layer(2048, true);
  const FlashPlan plan = plan_flash(problem, gpu);
  CHECK(std::visit([](const auto& kernel) { return kernel.shared_bytes(); }, plan) <= 101376);
  FlashProblem other = problem;
  other.cache = ElementType::f32;
  CHECK_THROWS_AS(plan_flash(other, gpu), Error);
}
