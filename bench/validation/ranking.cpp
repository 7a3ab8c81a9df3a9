// bench/validation/ranking.cpp - the planner's ranking of one GEMV, by terms
#include "bench/validation/ranking.hpp"

#include <algorithm>
#include <utility>

#include "support/format.hpp"

namespace ptxgen::validation {

namespace {

constexpr std::size_t kCandidates = 12;
constexpr std::uint32_t kFewBlocks[] = {40, 16, 8};

constexpr std::uint64_t kKiB = 1024;
constexpr ptx::Gpu kV100 = {
    "v100",
    "NVIDIA V100 PCIe",
    "sm_75",
    80,
    1380,
    900,
    16'000'000'000,
    6144 * kKiB,
    96 * kKiB,
    96 * kKiB,
    65536,
    2048,
    32,
    ptx::Dram::HBM,
    ptx::TensorCores{1024},
    ptx::MeasuredRates{.read_share = 0.962, .latency_ns = 574, .growth_ns = 404}};

// The largest of the terms that share the time between launch and reduction.
std::string_view largest(const GemvTerms& terms) {
  const std::pair<double, std::string_view> all[] = {{terms.blocks, "blocks"},
                                                     {terms.latency, "latency"},
                                                     {terms.dram, "dram"},
                                                     {terms.issue, "issue"},
                                                     {terms.l1, "l1"}};
  return std::max_element(std::begin(all), std::end(all))->second;
}

}  // namespace

const ptx::Gpu& v100() noexcept { return kV100; }

double Ranked::us() const noexcept { return prediction.chained_us - prediction.terms.boundary; }

std::vector<Ranked> ranked_plans() {
  GemvProblem problem;
  problem.k = problem.n = 1024;
  std::vector<Ranked> plans;
  for (const GemvCandidate& candidate : rank_gemv_plans(problem, kV100)) {
    if (plans.size() == kCandidates) break;
    plans.push_back({plans.size() + 1, candidate.plan, candidate.prediction});
  }
  // The plan that the simulator ran.
  GemvPlan plan = plans.front().plan;
  plan.warps_out = 1;
  plan.warps_k = 4;
  plan.unroll = 14;
  for (const std::uint32_t blocks : kFewBlocks) {
    plan.blocks = blocks;
    plans.push_back({0, plan, predict(plan, kV100)});
  }
  return plans;
}

std::string to_markdown(const std::vector<Ranked>& plans) {
  std::string text =
      "| rank | plan | blocks | latency | dram | issue | l1 | reduction | predicted us | largest "
      "|\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Ranked& one : plans) {
    const GemvTerms& terms = one.prediction.terms;
    text += format_text(
        "| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {} |\n",
        one.rank == 0 ? "by hand" : std::to_string(one.rank), to_text(one.plan), terms.blocks,
        terms.latency, terms.dram, terms.issue, terms.l1, terms.reduction, one.us(),
        largest(terms));
  }
  return text;
}

}  // namespace ptxgen::validation
