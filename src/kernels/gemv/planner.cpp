// src/kernels/gemv/planner.cpp - ranks GEMV plans by their predicted time
#include "ptxgen/kernels/gemv/planner.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include "kernels/gemv/model.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::size_t kShortList = 24;
constexpr std::size_t kOfPath = 2;

// A time with 11 binary digits, 0.05 to 0.1 %: what a first choice may lose by the law. Ties are
// ranked by how much the plan depends on it, then by resources.
double coarse(double microseconds) noexcept {
  int exponent = 0;
  const double mantissa = std::frexp(microseconds, &exponent);
  return std::ldexp(std::round(mantissa * 2048), exponent);
}

struct Ranked {
  GemvPlan plan;
  gemv::Forecast forecast;
};

// Handicap of rings, whose waits are not in the model.
constexpr double kRingHandicap = 1.01;
// A plan with idle multiprocessors is no first choice if it takes so many times as long as another
// where those do not share DRAM as the law says.
constexpr double kUnshared = 1.1;

// Bytes of blocks in flight on a multiprocessor that make up for loads which take longer than the
// law says, which was fitted to loads of floats: 1.5 times what the full rate needs, and 40 KB on
// GPUs with HBM. Fewer are a handicap.
constexpr double kFlightMargin = 1.5;
constexpr double kHbmFlight = 40'000;
constexpr double kLowFlightHandicap = 1.02;
double wanted_in_flight(const GemvProblem& problem, const ptx::Gpu& gpu) {
  if (!is_block_format(problem.weights)) return 0;
  const double needed = gemv::bytes_in_flight_needed(gpu, rates_of(gpu));
  return std::max(kFlightMargin * needed, gpu.dram == ptx::Dram::HBM ? kHbmFlight : 0);
}

/// What plans are compared with.
struct Limits {
  double unshared_us;  ///< slower ones come last
  double in_flight;    ///< fewer bytes are a handicap
};

auto rank_of(const Ranked& ranked, const Limits& limits) {
  const GemvPlan& plan = ranked.plan;
  const GemvPrediction& prediction = ranked.forecast.prediction;
  const double ring = plan.path == GemvPath::Direct ? 1 : kRingHandicap;
  const bool low = prediction.bytes_in_flight_per_sm < limits.in_flight;
  const double handicap = low ? std::max(ring, kLowFlightHandicap) : ring;
  return std::tuple(prediction.blocks_per_sm == 0, ranked.forecast.unshared_us > limits.unshared_us,
                    coarse(prediction.chained_us * handicap),
                    coarse(ranked.forecast.slow_us * handicap), prediction.workspace_bytes,
                    std::uint64_t{prediction.registers} * plan.threads(), plan.shared_bytes(),
                    plan.blocks, plan.path, plan.warps_out, plan.warps_k, plan.rows, plan.unroll,
                    plan.load_bytes, plan.cluster, plan.stages);
}

void sort(std::vector<Ranked>& list, const GemvProblem& problem, const ptx::Gpu& gpu) {
  Limits limits{std::numeric_limits<double>::infinity(), wanted_in_flight(problem, gpu)};
  for (const Ranked& ranked : list) {
    if (ranked.forecast.prediction.blocks_per_sm == 0) continue;
    limits.unshared_us = std::min(limits.unshared_us, kUnshared * ranked.forecast.unshared_us);
  }
  std::sort(list.begin(), list.end(), [&](const Ranked& a, const Ranked& b) {
    return rank_of(a, limits) < rank_of(b, limits);
  });
}

// The largest loss compared with the read rate.
std::string reason(const Ranked& ranked, const ptx::Gpu& gpu, const GpuRates& rates) {
  const GemvPlan& plan = ranked.plan;
  const GemvPrediction& prediction = ranked.forecast.prediction;
  const double slow = ranked.forecast.even_us - prediction.terms.dram;
  const double tail = ranked.forecast.stream_us - ranked.forecast.even_us;
  const double needed = gemv::bytes_in_flight_needed(gpu, rates);
  const std::string flight =
      format_text("{:.1f} KiB in flight", prediction.bytes_in_flight_per_sm / 1024);
  const std::string share = format_text("{:.0f} % of the read rate",
                                        100 * prediction.bandwidth_gb_per_s / rates.read_gb_per_s);
  if (prediction.terms.reduction > std::max(slow, tail)) {
    return format_text("{} of {} are added at the end, {:.1f} us; {} on each SM reach {}",
                       count_text(prediction.parts, "partial sum"),
                       count_text(prediction.reductions, "strip"), prediction.terms.reduction,
                       flight, share);
  }
  if (tail > slow) {
    return format_text(
        "{} SMs idle {:.1f} % of the time, which costs {:.2f} us: {} of equal size "
        "in {}",
        gpu.sms, 100 * prediction.tail_loss, tail, count_text(plan.units(), "unit"),
        count_text(plan.blocks, "block"));
  }
  if (prediction.bytes_in_flight_per_sm < needed) {
    return format_text("{} on each SM, and {:.1f} KiB are needed for {:.0f} GB/s", flight,
                       needed / 1024, rates.read_gb_per_s);
  }
  if (prediction.waves > 1) {
    return format_text(
        "{} are {:.1f} waves, each starts with nothing in flight; {} on each SM reach {}",
        count_text(plan.blocks, "block"), prediction.waves, flight, share);
  }
  return format_text("{} on each SM reach {}; SMs idle {:.1f} % of the time, which costs {:.2f} us",
                     flight, share, 100 * prediction.tail_loss, tail);
}

// The best valid plans of a sorted list, with exact divisions; the best two of every path are input
// of a tuner.
std::vector<Ranked> short_list(std::vector<Ranked> list, const ptx::Gpu& gpu,
                               const GpuRates& rates) {
  const ptx::Target& target = ptx::target(gpu.target);
  std::array<std::size_t, 3> of_path{};
  std::vector<Ranked> kept;
  for (Ranked& ranked : list) {
    std::size_t& count = of_path[static_cast<std::size_t>(ranked.plan.path)];
    if (kept.size() >= kShortList && count >= kOfPath) continue;
    if (!gemv::can_be(ranked.plan, target)) continue;
    ranked.forecast = gemv::forecast(ranked.plan, gpu, rates, gemv::weights(ranked.plan),
                                     gemv::divide(ranked.plan, gpu.sms));
    kept.push_back(std::move(ranked));
    ++count;
  }
  return kept;
}

}  // namespace

GemvPrediction predict(const GemvPlan& plan, const ptx::Gpu& gpu) {
  return gemv::forecast(plan, gpu, rates_of(gpu), gemv::weights(plan), gemv::divide(plan, gpu.sms))
      .prediction;
}

std::vector<GemvCandidate> rank_gemv_plans(const GemvProblem& problem, const ptx::Gpu& gpu) {
  const GpuRates rates = rates_of(gpu);
  std::vector<Ranked> list;
  gemv::Weights weights;
  std::uint32_t load_bytes = 0;
  for (const GemvPlan& plan : gemv::candidates(problem, gpu, rates)) {
    if (plan.load_bytes != load_bytes || plan.path == GemvPath::Bulk) {
      weights = gemv::weights(plan);
      load_bytes = plan.path == GemvPath::Bulk ? 0 : plan.load_bytes;
    }
    list.push_back(
        {plan, gemv::forecast(plan, gpu, rates, weights, gemv::divide_roughly(plan, gpu.sms))});
  }
  sort(list, problem, gpu);
  list = short_list(std::move(list), gpu, rates);
  sort(list, problem, gpu);
  std::vector<GemvCandidate> candidates;
  for (const Ranked& ranked : list) {
    candidates.push_back({ranked.plan, ranked.forecast.prediction, reason(ranked, gpu, rates)});
  }
  return candidates;
}

GemvPlan plan_gemv(const GemvProblem& problem, const ptx::Gpu& gpu) {
  return rank_gemv_plans(problem, gpu).front().plan;
}

}  // namespace ptxgen::inline v0
