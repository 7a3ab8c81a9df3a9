// tests/kernels/gemm_planner_test.cpp - which kernel the family takes, and its predicted time
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>

#include "launcher/rig.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/gemm/planner.hpp"
#include "ptxgen/kernels/model/tensor.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

ChosenKernel chosen(const Rig& rig, const GemmProblem& problem) {
  GemmOperands at;
  at.a.address = at.b.address = at.c.address = 256;
  return rig.launcher.choose(problem, at);
}

const ptx::Gpu& gpu(std::string_view name) { return *ptx::find_gpu(name); }

}  // namespace

TEST_CASE("one row is a GEMV, few rows a batched one, more go to tensor cores") {
  const Rig rig;
  GemmProblem problem{.m = 1, .n = 4096, .k = 4096, .transpose_b = true};
  const ChosenKernel one = chosen(rig, problem);
  CHECK(one.kernel->name == "gemv");
  CHECK(one.implementation == "gemv");
  CHECK(one.reason.starts_with("one row: the GEMV, "));
  problem.m = 4;
  const ChosenKernel few = chosen(rig, problem);
  CHECK(few.kernel->name == "batched_gemv");
  CHECK(few.reason.starts_with("4 rows: the batched GEMV, "));
  problem.m = 1024;
  const ChosenKernel many = chosen(rig, problem);
  CHECK(many.kernel->name == "gemm_wgmma");
  CHECK(many.implementation == "wgmma");
  INFO(many.reason);
  CHECK(many.reason.starts_with("auto: fastest plan, gemm_wgmma "));
  // Rows that tensor maps cannot take.
  GemmProblem odd = problem;
  odd.ldb = 4100;
  const ChosenKernel unaligned = chosen(rig, odd);
  CHECK(unaligned.kernel->name == "gemm_mma");
  CHECK(unaligned.reason.starts_with("auto: fastest plan, gemm_mma "));
  GemmOperands at;
  at.a.address = 256;
  at.b.address = 264;
  at.c.address = 256;
  CHECK(rig.launcher.choose(problem, at).kernel->name == "gemm_mma");
  // What a GEMV or a batched one cannot compute.
  problem.m = 4;
  problem.bias = true;
  CHECK(chosen(rig, problem).kernel->name == "gemm_mma");
  problem.m = 1;
  CHECK(chosen(rig, problem).kernel->name == "gemv");
  problem.activation = GemmActivation::Silu;
  CHECK(chosen(rig, problem).kernel->name == "gemm_mma");
  // Tensor cores would round f32.
  CHECK(chosen(rig, {.m = 100, .n = 100, .k = 100, .type = ElementType::f32}).kernel->name ==
        "gemm_tiled");
}

TEST_CASE("matmul of several rows is one launch, and the record says of what and why") {
  const Rig rig;
  const std::uint32_t m = 3, k = 2, n = 2;
  const Buffer<f32> a(rig.context, std::vector<float>{1, 2, 3, 4, 5, 6});
  const Buffer<f32> b(rig.context, std::vector<float>{1, 10, 100, 1000});
  const Buffer<f32> c(rig.context, 6);
  const LaunchRecord record = rig.launcher.matmul(c, a, b, {m, k, n}, rig.stream);
  rig.stream.synchronize();
  CHECK(record.launches == 1);
  CHECK(record.kernel.starts_with("gemm_"));
  CHECK(record.reason.starts_with("auto: fastest plan, gemm_"));
  CHECK(read(c) == std::vector<float>{201, 2010, 403, 4030, 605, 6050});
}

namespace {

void print(const GemmProblem& problem, const char* name, const GemmCandidate& one, double reached) {
  const GemmPrediction& p = one.prediction;
  std::printf(
      "%s on %s: %s, %.1f us +- %.0f %%, %.0f TFLOP/s, %.1f %% of peak, %.1f %% of what is "
      "reached, bound by %s\n",
      to_text(problem).c_str(), name, to_text(one.kernel).c_str(), p.us, 100 * p.error.worst,
      p.tflops, 100 * p.share_of_peak, 100 * p.tflops / reached, std::string(p.bound_by).c_str());
}

}  // namespace

TEST_CASE("large products are bound by the tensor cores, and predicted at their known shares") {
  std::printf("f16, f32 sums\n");
  for (const GemmProblem& problem :
       {GemmProblem{.m = 4096, .n = 4096, .k = 4096},
        GemmProblem{.m = 8192, .n = 8192, .k = 512, .c = ElementType::f16}}) {
    for (const char* name : {"h100", "h200", "a100", "rtx4090"}) {
      const std::vector<GemmCandidate> ranking = rank_gemm_plans(problem, gpu(name));
      const TensorRates rates = tensor_rates(gpu(name), problem.type);
      const bool wgmma = rates.wgmma_share != 0;
      if (wgmma) {
        const GemmCandidate& best = ranking.front();
        REQUIRE(std::holds_alternative<GemmWgmma>(best.kernel));
        const double reached = rates.peak_tflops * rates.wgmma_share;
        print(problem, name, best, reached);
        CHECK(best.prediction.bound_by == "tensor");
        CHECK(best.prediction.tflops <= reached);
        CHECK(best.prediction.tflops >= 0.93 * reached);
        CHECK(best.prediction.share_of_peak >= 0.8);
      }
      const auto mma = std::ranges::find_if(ranking, [](const GemmCandidate& one) {
        return std::holds_alternative<GemmMma>(one.kernel);
      });
      REQUIRE(mma != ranking.end());
      print(problem, name, *mma, rates.mma_tflops());
      CHECK(mma->prediction.tflops <= rates.mma_tflops());
      CHECK(mma->prediction.share_of_peak >= (wgmma ? 0.62 : 0.9));
      if (problem.k == 4096) CHECK(mma->prediction.bound_by == "tensor");
    }
  }
  // Datasheets: dense f16 with sums in f32.
  CHECK(tensor_rates(gpu("h100"), ElementType::f16).peak_tflops == Approx(989).epsilon(0.01));
  CHECK(tensor_rates(gpu("a100"), ElementType::bf16).peak_tflops == Approx(312).epsilon(0.01));
  CHECK(tensor_rates(gpu("rtx4090"), ElementType::f16).peak_tflops == Approx(165.2).epsilon(0.01));
  CHECK(tensor_rates(gpu("a100"), ElementType::f32).peak_tflops == Approx(156).epsilon(0.01));
  CHECK(tensor_rates(gpu("t4"), ElementType::bf16).peak_tflops == 0);
}

TEST_CASE("the family as a module for sm_90 is not a kernel for sm_90a alone") {
  const GemmProblem problem{.m = 4096, .n = 4096, .k = 4096};
  for (const auto& [target, kernel] :
       {std::pair{"sm_90", "gemm_mma"}, std::pair{"sm_90a", "gemm_wgmma"}}) {
    const ptx::Module module = Describe<GemmProblem>::build(problem, ptx::target(target));
    CHECK(module.text(module.functions[0].name) == kernel);
  }
}

TEST_CASE("every ranked plan fits its GPU, and the order is that of the times") {
  for (const ptx::Gpu& one : ptx::gpus()) {
    for (const GemmProblem& problem :
         {GemmProblem{.m = 17, .n = 4096, .k = 4096}, GemmProblem{.m = 3000, .n = 700, .k = 64},
          GemmProblem{.m = 64, .n = 64, .k = 64, .type = ElementType::bf16}}) {
      INFO(one.name << " " << to_text(problem));
      const std::vector<GemmCandidate> ranking = rank_gemm_plans(problem, one);
      REQUIRE(!ranking.empty());
      for (std::size_t i = 0; i < ranking.size(); ++i) {
        const GemmCandidate& candidate = ranking[i];
        CHECK(candidate.prediction.us >= candidate.prediction.terms.launch);
        if (i > 0) CHECK(candidate.prediction.us > ranking[i - 1].prediction.us * 0.99);
        if (const auto* mma = std::get_if<GemmMma>(&candidate.kernel)) {
          CHECK_NOTHROW(check(*mma, ptx::target(one.target)));
        }
        if (const auto* wgmma = std::get_if<GemmWgmma>(&candidate.kernel)) {
          CHECK(one.target == "sm_90a");
          CHECK_NOTHROW(check(*wgmma, ptx::target(one.target)));
        }
      }
    }
  }
}
