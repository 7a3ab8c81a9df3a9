// src/kernels/gemv/predict.cpp - predicted time of a GEMV plan
#include <algorithm>
#include <cmath>

#include "kernels/gemv/model.hpp"
#include "kernels/gemv/partition.hpp"
#include "ptx/occupancy.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

// Fixed costs in microseconds. Public measurements on H100-class parts put a launch near 1, the
// boundary of two kernels of a graph near 1.3; the others are estimates to be replaced by measured
// ones.
constexpr double kLaunch = 1.0;
constexpr double kGraphBoundary = 1.3;
constexpr double kProgrammaticBoundary = 0.3;
constexpr double kBlockStart = 0.4;  // of a block that replaces a finished one
constexpr double kButterfly = 0.08;  // the lanes' sums of a strip, layout R
constexpr double kStack = 0.1;       // the warps' sums of a strip through shared memory
constexpr double kTicket = 0.7;      // stores, fence, ticket
constexpr double kClusterSum = 0.4;  // a cluster's barriers and remote reads
constexpr double kPartsRound = 0.2;  // loads of partial sums from L2, so many at a time:
constexpr std::uint64_t kPartsAtOnce = 8;
constexpr double kHidden = 0.75;     // share of the reduction that the next kernel's loads cover
constexpr double kIssueShare = 0.6;  // of the schedulers' slots that such a loop fills

constexpr double kL1BytesInClock = 128;
constexpr double kL1Share = 0.7;  // of that rate, for requests of mixed width
constexpr double kSchedulers = 4;
constexpr double kCopyClocks = 32;  // of the thread that issues bulk copies

/// Instructions of a warp for one of its loads: the load itself and its share of the loop, an fma
/// for each weight, a conversion for each 16-bit one, and its share of the loads of x.
double instructions_of_load(const GemvPlan& plan) noexcept {
  const double weights = lane_elements(plan);
  const bool narrow = plan.problem.weights != ElementType::f32;
  const double x_loads =
      plan.problem.layout == GemvLayout::R ? weights * bytes(plan.problem.x) / 16 / plan.rows : 1;
  const double ring = plan.stages != 0 ? 3 : 0;  // copy, wait and load of its own
  return 2 + ring + weights * (narrow ? 2 : 1) + x_loads;
}

// Combines the times of four limits: close to the largest if one dominates, larger if they are
// close, because none is then reached all the time.
double together(double a, double b, double c, double d) noexcept {
  const auto fourth = [](double value) { return value * value * value * value; };
  return std::sqrt(std::sqrt(fourth(a) + fourth(b) + fourth(c) + fourth(d)));
}

std::uint16_t sm_of(const ptx::Gpu& gpu) noexcept {
  ptx::TargetName name;
  return ptx::parse_target_name(gpu.target, name) ? name.sm : std::uint16_t{0};
}

// Resources of a plan on a multiprocessor.
std::uint32_t fitting_blocks(const GemvPlan& plan, const ptx::Gpu& gpu,
                             std::uint32_t register_count) noexcept {
  ptx::BlockNeeds needs;
  needs.threads = plan.threads();
  needs.registers = register_count;
  needs.static_shared = plan.shared_bytes();
  return ptx::blocks_per_sm(gpu, needs);
}

// Time of reading the weights, in microseconds, with equal work on all multiprocessors.
class Stream {
 public:
  Stream(const GemvPlan& plan, const ptx::Gpu& gpu, const GemvPrediction& prediction,
         const Weights& matrix, const Division& division)
      : plan_(plan), gpu_(gpu), prediction_(prediction), matrix_(matrix), division_(division) {}

  [[nodiscard]] double us() const noexcept { return together(latency(), memory(), issue(), l1()); }
  [[nodiscard]] double memory() const noexcept {
    const double moved = static_cast<double>(matrix_.matrix_bytes) +
                         static_cast<double>(plan_.problem.k) * bytes(plan_.problem.x) +
                         static_cast<double>(plan_.problem.n) * bytes(plan_.problem.y);
    return moved / (gpu_.bandwidth_gb_per_s * gpu_.read_share * 1e3);
  }

 private:
  // Little's law: a resident block runs its steps one after another. A ring has several steps in
  // flight, and is refilled for each piece of a strip.
  [[nodiscard]] double latency() const noexcept {
    const double sms = gpu_.sms;
    const double blocks = plan_.blocks;
    const double places = std::min<double>(prediction_.blocks_per_sm, std::ceil(blocks / sms));
    const double first_byte = gpu_.dram_latency_ns * 1e-3;
    const double work = instructions_of_load(plan_) * plan_.unroll * plan_.rows / gpu_.clock_mhz;
    const double depth = plan_.stages > 1 ? plan_.stages - 1 : 1;
    const double step = std::max((first_byte + work) / depth, work);
    const double piece = (plan_.problem.layout == GemvLayout::R ? kButterfly : 0) +
                         (plan_.warps_k > 1 ? kStack : 0) + (depth > 1 ? first_byte : 0);
    const double steps = static_cast<double>(plan_.units()) / (sms * places);
    const double pieces = static_cast<double>(division_.pieces) / (sms * places);
    const double rounds = std::max(1.0, blocks / (sms * places));
    return steps * step + pieces * piece + (rounds - 1) * kBlockStart;
  }
  [[nodiscard]] double issue() const noexcept {
    const double slots = gpu_.sms * kSchedulers * gpu_.clock_mhz * kIssueShare;
    const double loads = static_cast<double>(matrix_.bytes) / (32.0 * plan_.load_bytes);
    const double copies = plan_.path == GemvPath::Bulk ? static_cast<double>(matrix_.requests) : 0;
    return std::max(loads * instructions_of_load(plan_) / slots,
                    copies * kCopyClocks / (gpu_.sms * gpu_.clock_mhz));
  }
  // Weights and x through the L1 caches: with layout R every lane needs its own part of x, for all
  // of a warp's rows at once.
  [[nodiscard]] double l1() const noexcept {
    const GemvProblem& problem = plan_.problem;
    const auto weights = static_cast<double>(matrix_.bytes);
    const double x = problem.layout == GemvLayout::R
                         ? weights / bytes(problem.weights) * bytes(problem.x) / plan_.rows
                         : 0;
    const double times = plan_.stages != 0 ? 3 : 1;  // into shared memory and out of it
    return (times * weights + x) / (kL1BytesInClock * kL1Share * gpu_.sms * gpu_.clock_mhz);
  }

  const GemvPlan& plan_;
  const ptx::Gpu& gpu_;
  const GemvPrediction& prediction_;
  const Weights& matrix_;
  const Division& division_;
};

double reduction_us(const GemvPlan& plan, const Division& division) noexcept {
  double us = plan.cluster > 1 ? kClusterSum : 0;
  if (division.reductions != 0) {
    us += kTicket + kPartsRound * static_cast<double>(ceil_div(plan.max_parts(), kPartsAtOnce));
  }
  return us;
}

}  // namespace

Forecast forecast(const GemvPlan& plan, const ptx::Gpu& gpu, const Weights& matrix,
                  const Division& division) {
  const Traffic counts = traffic(plan, matrix, division);
  Forecast all;
  GemvPrediction& made = all.prediction;
  made.bytes_read = counts.bytes_read;
  made.bytes_written = counts.bytes_written;
  made.weight_requests = matrix.requests;
  made.weight_sectors = matrix.sectors;
  made.reductions = division.reductions;
  made.parts = division.parts;
  made.workspace_bytes = plan.workspace_bytes();
  made.registers = registers(plan, sm_of(gpu));
  made.blocks_per_sm = fitting_blocks(plan, gpu, max_registers(plan));
  if (made.blocks_per_sm == 0) return all;  // no target of the GPU allows such a plan

  const double sms = gpu.sms;
  const double blocks = plan.blocks;
  const auto weights = static_cast<double>(matrix.bytes);
  made.waves = blocks / (made.blocks_per_sm * sms);
  const auto busiest = static_cast<double>(division.busiest_bytes);
  made.tail_loss = busiest > 0 ? std::max(0.0, 1 - weights / sms / busiest) : 0;
  // Lanes and rows beyond the matrix's edge load nothing.
  const double filled =
      weights / (static_cast<double>(plan.units()) * static_cast<double>(step_bytes(plan)));
  const double places = std::min<double>(made.blocks_per_sm, std::ceil(blocks / sms));
  made.bytes_in_flight_per_sm = places * static_cast<double>(plan.bytes_in_flight()) * filled;

  const Stream stream(plan, gpu, made, matrix, division);
  Times& times = all.times;
  times.memory = stream.memory();
  times.stream = stream.us();
  times.busy = times.stream / (1 - made.tail_loss);
  times.reduction = reduction_us(plan, division);
  made.bandwidth_gb_per_s = times.stream > 0 ? weights / times.stream * 1e-3 : 0;
  const double first_byte = gpu.dram_latency_ns * 1e-3;
  made.isolated_us = kLaunch + first_byte + times.busy + times.reduction;
  made.chained_us = plan.programmatic
                        ? kProgrammaticBoundary + times.busy + times.reduction * (1 - kHidden)
                        : kGraphBoundary + first_byte + times.busy + times.reduction;
  return all;
}

double bytes_in_flight_needed(const ptx::Gpu& gpu) noexcept {
  return gpu.bandwidth_gb_per_s * gpu.read_share * gpu.dram_latency_ns / gpu.sms;
}

}  // namespace ptxgen::inline v0::gemv
