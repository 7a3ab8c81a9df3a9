// src/cli/commands/gemm_ranking.cpp - plans of matrix products, predicted
#include "cli/commands/gemm_ranking.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli_common/device_choice.hpp"
#include "cli_common/files.hpp"
#include "cli_common/gemv_report.hpp"
#include "cli_common/text_table.hpp"
#include "ptxgen/kernels/gemm/gemm.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

template <class Kernel>
const Kernel* as(const KernelDescription& kernel, const void* spec) noexcept {
  return kernel.type == kDescription<Kernel>.type ? static_cast<const Kernel*>(spec) : nullptr;
}

nlohmann::json as_json(const GemmCandidate& candidate) {
  const GemmPrediction& p = candidate.prediction;
  return {{"plan", to_text(candidate.kernel)},
          {"us", p.us},
          {"tflops", p.tflops},
          {"share_of_peak", p.share_of_peak},
          {"bound_by", p.bound_by},
          {"blocks", p.blocks},
          {"blocks_per_sm", p.blocks_per_sm},
          {"terms",
           {{"launch", p.terms.launch},
            {"tensor", p.terms.tensor},
            {"shared", p.terms.shared},
            {"latency", p.terms.latency},
            {"l2", p.terms.l2},
            {"dram", p.terms.dram},
            {"outputs", p.terms.outputs},
            {"reduction", p.terms.reduction}}},
          {"error_band", to_json(p.error)}};
}

}  // namespace

bool is_gemm(const KernelDescription& kernel) noexcept {
  return kernel.type == kDescription<GemmProblem>.type ||
         kernel.type == kDescription<GemmMma>.type || kernel.type == kDescription<GemmTiled>.type ||
         kernel.type == kDescription<GemmNaive>.type || kernel.type == kDescription<GemmWgmma>.type;
}

GemmCandidate gemm_candidate(const KernelDescription& kernel, const void* spec,
                             const ptx::Gpu& gpu) {
  const auto of = [&](const auto& one) {
    return GemmCandidate{one, predict(one, gpu), std::string(predict(one, gpu).bound_by)};
  };
  if (const auto* mma = as<GemmMma>(kernel, spec)) {
    check(*mma, ptx::target(gpu.target));
    return of(*mma);
  }
  if (const auto* wgmma = as<GemmWgmma>(kernel, spec)) {
    check(*wgmma, ptx::target(gpu.target));
    return of(*wgmma);
  }
  if (const auto* tiled = as<GemmTiled>(kernel, spec)) return of(*tiled);
  if (const auto* naive = as<GemmNaive>(kernel, spec)) return of(*naive);
  return rank_gemm_plans(*as<GemmProblem>(kernel, spec), gpu).front();
}

std::string gemm_ranking(const LibraryKernel& kernel, const ptx::Gpu& gpu, std::uint64_t top,
                         bool json) {
  const ErasedValue spec = kernel.entry->make_spec(kernel.values);
  const GemmProblem& problem = *as<GemmProblem>(*kernel.entry, spec.get());
  const std::vector<GemmCandidate> ranking = rank_gemm_plans(problem, gpu);
  const std::size_t shown = std::min<std::size_t>(ranking.size(), top);
  if (json) {
    nlohmann::json candidates = nlohmann::json::array();
    for (std::size_t i = 0; i < shown; ++i) candidates.push_back(as_json(ranking[i]));
    return text_of(nlohmann::json{{"kernel", "gemm"},
                                  {"problem", to_text(problem)},
                                  {"gpu", to_json(gpu)},
                                  {"candidates", std::move(candidates)}});
  }
  std::string text =
      format_text("gemm {} on {}, {} SMs\npredicted times; {}\n\n", to_text(problem), gpu.full_name,
                  gpu.sms, error_text(ranking.front().prediction.error));
  TextTable table({"", "us", "TFLOP/s", "% of peak", "tensor us", "shared us", "l2 us", "dram us",
                   "latency us"});
  for (std::size_t i = 0; i < shown; ++i) {
    const GemmPrediction& p = ranking[i].prediction;
    table.add({std::to_string(i + 1), fixed(p.us, 2), fixed(p.tflops, 1),
               fixed(100 * p.share_of_peak, 1), fixed(p.terms.tensor, 2), fixed(p.terms.shared, 2),
               fixed(p.terms.l2, 2), fixed(p.terms.dram, 2), fixed(p.terms.latency, 2)});
  }
  text += table.line(0) + "\n";
  for (std::size_t i = 0; i < shown; ++i) {
    text += format_text("{}\n    {}; {}\n", table.line(i + 1), to_text(ranking[i].kernel),
                        ranking[i].why);
  }
  return text;
}

}  // namespace ptxgen::cli
