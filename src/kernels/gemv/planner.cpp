// src/kernels/gemv/planner.cpp - ranks GEMV plans by their predicted time
#include "ptxgen/kernels/gemv/planner.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <tuple>

#include "kernels/gemv/model.hpp"
#include "support/count.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::size_t kShortList = 24;
constexpr std::size_t kOfPath = 2;

// A time with 10 binary digits: the model is no finer than 0.1 %, and what is equal for it goes by
// what the plans take.
double coarse(double microseconds) noexcept {
  int exponent = 0;
  const double mantissa = std::frexp(microseconds, &exponent);
  return std::ldexp(std::round(mantissa * 1024), exponent);
}

struct Ranked {
  GemvPlan plan;
  gemv::Forecast forecast;
};

// What a ring must be faster by: its waits are not in the model.
constexpr double kRingHandicap = 1.01;

auto rank_of(const Ranked& ranked) {
  const GemvPlan& plan = ranked.plan;
  const GemvPrediction& made = ranked.forecast.prediction;
  const double handicap = plan.path == GemvPath::Direct ? 1 : kRingHandicap;
  return std::tuple(made.blocks_per_sm == 0, coarse(made.chained_us * handicap),
                    coarse(made.isolated_us * handicap), made.workspace_bytes,
                    std::uint64_t{made.registers} * plan.threads(), plan.shared_bytes(),
                    plan.blocks, plan.path, plan.warps_out, plan.warps_k, plan.rows, plan.unroll,
                    plan.load_bytes, plan.cluster, plan.stages);
}

void sort(std::vector<Ranked>& list) {
  std::sort(list.begin(), list.end(),
            [](const Ranked& a, const Ranked& b) { return rank_of(a) < rank_of(b); });
}

std::string decimal(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

// What costs most beyond the bytes at the rate of a reader.
std::string reason(const Ranked& ranked, const ptx::Gpu& gpu) {
  const GemvPlan& plan = ranked.plan;
  const GemvPrediction& made = ranked.forecast.prediction;
  const gemv::Times& times = ranked.forecast.times;
  const double slow = times.stream - times.memory;
  const double tail = times.busy - times.stream;
  const double wanted = gemv::bytes_in_flight_wanted(gpu);
  const std::string flight = decimal(made.bytes_in_flight_per_sm / 1024, 1) + " KiB in flight";
  const std::string read_rate = "the read rate";
  const std::string share = decimal(100 * times.memory / times.stream, 0) + " % of " + read_rate;
  if (times.reduction > std::max(slow, tail)) {
    return count_text(made.parts, "partial sum") + " of " + count_text(made.reductions, "strip") +
           " are added at the end, " + decimal(times.reduction, 1) + " us; " + flight +
           " on each SM reach " + share;
  }
  if (tail > slow) {
    return std::to_string(gpu.sms) + " SMs idle " + decimal(100 * made.tail_loss, 1) +
           " % of the time: " + count_text(plan.units(), "unit") + " of equal size in " +
           count_text(plan.blocks, "block");
  }
  if (made.bytes_in_flight_per_sm < wanted) {
    return flight + " on each SM, and " + decimal(wanted / 1024, 1) + " KiB are needed for " +
           decimal(gpu.bandwidth_gb_per_s * gpu.read_share, 0) + " GB/s at " +
           std::to_string(gpu.dram_latency_ns) + " ns";
  }
  if (made.waves > 1) {
    return count_text(plan.blocks, "block") + " come to " + decimal(made.waves, 1) +
           " waves, each starts with nothing in flight; " + flight + " on each SM reach " + share;
  }
  return flight + " on each SM reach " + share + ", SMs idle " + decimal(100 * made.tail_loss, 1) +
         " % of the time";
}

// The best of a sorted list that can be built, with exact divisions; of every path the best two, if
// only for a tuner to look at.
std::vector<Ranked> short_list(std::vector<Ranked> list, const ptx::Gpu& gpu) {
  const ptx::Target& target = ptx::target(gpu.target);
  std::array<std::size_t, 3> of_path{};
  std::vector<Ranked> kept;
  for (Ranked& ranked : list) {
    std::size_t& count = of_path[static_cast<std::size_t>(ranked.plan.path)];
    if (kept.size() >= kShortList && count >= kOfPath) continue;
    if (!gemv::can_be(ranked.plan, target)) continue;
    ranked.forecast = gemv::forecast(ranked.plan, gpu, gemv::weights(ranked.plan),
                                     gemv::divide(ranked.plan, gpu.sms));
    kept.push_back(std::move(ranked));
    ++count;
  }
  return kept;
}

}  // namespace

GemvPrediction predict(const GemvPlan& plan, const ptx::Gpu& gpu) {
  return gemv::forecast(plan, gpu, gemv::weights(plan), gemv::divide(plan, gpu.sms)).prediction;
}

std::vector<GemvCandidate> rank_gemv_plans(const GemvProblem& problem, const ptx::Gpu& gpu) {
  std::vector<Ranked> list;
  gemv::Weights weights;
  std::uint32_t load_bytes = 0;
  for (const GemvPlan& plan : gemv::candidates(problem, gpu)) {
    if (plan.load_bytes != load_bytes || plan.path == GemvPath::Bulk) {
      weights = gemv::weights(plan);
      load_bytes = plan.path == GemvPath::Bulk ? 0 : plan.load_bytes;
    }
    list.push_back({plan, gemv::forecast(plan, gpu, weights, gemv::divide_roughly(plan, gpu.sms))});
  }
  sort(list);
  list = short_list(std::move(list), gpu);
  sort(list);
  std::vector<GemvCandidate> candidates;
  for (const Ranked& ranked : list) {
    candidates.push_back({ranked.plan, ranked.forecast.prediction, reason(ranked, gpu)});
  }
  return candidates;
}

GemvPlan plan_gemv(const GemvProblem& problem, const ptx::Gpu& gpu) {
  return rank_gemv_plans(problem, gpu).front().plan;
}

}  // namespace ptxgen::inline v0
