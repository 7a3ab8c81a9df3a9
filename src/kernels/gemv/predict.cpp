// src/kernels/gemv/predict.cpp - predicted time of a GEMV plan
#include <algorithm>
#include <cmath>

#include "kernels/gemv/model.hpp"
#include "kernels/gemv/partition.hpp"
#include "kernels/model/law.hpp"
#include "ptx/occupancy.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

// Fixed costs in microseconds: estimates, never measured.
constexpr double kButterfly = 0.08;  // the lanes' sums of a strip, layout R
constexpr double kStack = 0.1;       // the warps' sums of a strip through shared memory
constexpr double kTicket = 0.7;      // stores, fence, ticket
constexpr double kClusterSum = 0.4;  // a cluster's barriers and remote reads
constexpr double kPartsRound = 0.2;  // kPartsAtOnce loads of partial sums from the L2
constexpr double kHidden = 0.75;     // share of the reduction that the next kernel's loads cover
constexpr double kIssueShare = 0.6;  // of the schedulers' slots that such a loop fills

// Of the rate of kernels that only read: torch's products with 8.6 GB of f32 weights take 2.77 ms
// on H100 SXM and 4.51 ms on H100 PCIe (KernelBench 423217d).
constexpr double kReadShare = 0.957;

constexpr double kL1BytesInClock = 128;
constexpr double kL1Share = 0.7;  // of that rate, for requests of mixed width
constexpr double kSchedulers = 4;
constexpr double kCopyClocks = 32;  // of the thread that issues bulk copies

/// Instructions of a lane for each weight of a block, counted by the emulator: products with a
/// digit of x, and a share of what makes digits of x for all rows of a strip.
constexpr double kOfDigit = 0.39;
constexpr double kOfFloatX = 7.5;
constexpr double kOfQuantizedX = 1.5;
double instructions_of_weight(const GemvPlan& plan, const BlockFormat& blocks) noexcept {
  const double digits = staged_x(blocks, plan.problem.x).digits;
  const double x = digits == 1 ? kOfQuantizedX : kOfFloatX;
  // Lanes without weights in the last step of a row wait for the others.
  const double all = static_cast<double>(plan.steps()) * plan.step_elements();
  const double idle = all / std::max(1u, plan.problem.k);
  const double weight_bytes =
      static_cast<double>(bytes(blocks.type)) / info(blocks.type).block_values;
  const double copies =
      blocks.repacked ? 0 : (plan.stages != 0 ? 1 : 2) * weight_bytes / plan.load_bytes;
  const double strips =
      keeps_x(plan) ? static_cast<double>(plan.strips()) / std::max(1u, plan.blocks) : 1;
  return (blocks.decode + digits * kOfDigit) * idle + copies + x / (plan.strip_outputs() * strips);
}

/// Instructions of a warp for one of its loads: the load itself and its share of the loop, an fma
/// for each weight, a conversion for each 16-bit one, and its share of the loads of x.
double instructions_of_load(const GemvPlan& plan) noexcept {
  if (const BlockFormat* blocks = block_format(plan.problem)) {
    return blocks->unit * instructions_of_weight(plan, *blocks);
  }
  const double weights = lane_elements(plan);
  const bool narrow = plan.problem.weights != ElementType::f32;
  const double x_loads =
      plan.problem.layout == GemvLayout::R ? weights * bytes(plan.problem.x) / 16 / plan.rows : 1;
  const double ring = plan.stages != 0 ? 3 : 0;  // copy, wait and load of its own
  return 2 + ring + weights * (narrow ? 2 : 1) + x_loads;
}

// Bytes that a lane reads for an element of x; with blocks from shared memory.
double x_bytes(const GemvProblem& problem) noexcept {
  const BlockFormat* blocks = block_format(problem);
  return blocks != nullptr ? staged_x(*blocks, problem.x).digits : bytes(problem.x);
}

// Until a block has x of a piece as integers: a load from the L2, then this many instructions for
// each 32 elements, by all its warps.
constexpr double kXInstructions = 250;
double staging_us(const GemvPlan& plan, const ptx::Gpu& gpu, const GpuRates& rates) noexcept {
  if (block_format(plan.problem) == nullptr) return 0;
  const double elements = static_cast<double>(max_segment_steps(plan)) * plan.step_elements();
  const double groups = std::ceil(std::min<double>(elements, plan.problem.k) / 32);
  const double of_thread = std::ceil(groups / plan.threads());
  const double warps = std::max(1.0, plan.threads() / 32 / kSchedulers);
  const double share = plan.problem.x == ElementType::q8_1 ? 0.2 : 1;
  return rates.hit_ns * 1e-3 + share * of_thread * warps * kXInstructions / gpu.clock_mhz;
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

// Time of reading the weights, in microseconds. `skew` is the work of the busiest multiprocessor
// relative to the mean: its loads, instructions and L1 decide, while all share DRAM.
class Stream {
 public:
  Stream(const GemvPlan& plan, const ptx::Gpu& gpu, const GpuRates& rates,
         const GemvPrediction& prediction, const Weights& matrix, const Division& division)
      : plan_(plan),
        gpu_(gpu),
        rates_(rates),
        prediction_(prediction),
        matrix_(matrix),
        division_(division) {}

  [[nodiscard]] double us(double skew) const noexcept {
    const double memory = model::under_load(sequence(skew, loop_latency()), dram());
    return model::together(memory, skew * issue(), skew * l1(), blocks()) + cold();
  }
  // If the busiest multiprocessor had no more than its share of DRAM, and loads took `times` as
  // long.
  [[nodiscard]] double unshared_us(double skew, double times) const noexcept {
    model::Sequence longer = sequence(1, times * loop_latency());
    longer.growth_us *= times;
    const double memory = model::under_load(longer, dram());
    return model::together(skew * memory, skew * issue(), skew * l1(), blocks()) + cold();
  }
  [[nodiscard]] double blocks() const noexcept { return plan_.blocks * rates_.block_ns * 1e-3; }
  // The boundary has the life of a block whose load hits the L2; the first load misses.
  [[nodiscard]] double cold() const noexcept { return (rates_.latency_ns - rates_.hit_ns) * 1e-3; }
  [[nodiscard]] double loop_latency() const noexcept {
    return (rates_.latency_ns - rates_.start_ns) * 1e-3;
  }
  // Outputs stay in the L2.
  [[nodiscard]] double dram() const noexcept {
    const double moved = static_cast<double>(matrix_.matrix_bytes) +
                         static_cast<double>(bytes(plan_.problem.x, plan_.problem.k));
    return moved / (rates_.read_gb_per_s * kReadShare) * 1e-3;
  }
  // A resident block runs its steps one after another. A ring has several steps in flight, and is
  // refilled for each piece of a strip. The first load is part of the boundary.
  [[nodiscard]] model::Sequence sequence(double skew, double latency) const noexcept {
    const double sms = gpu_.sms;
    const double blocks = plan_.blocks;
    const double places = std::min<double>(prediction_.blocks_per_sm, std::ceil(blocks / sms));
    const double work = instructions_of_load(plan_) * plan_.unroll * plan_.rows / gpu_.clock_mhz;
    const double depth = plan_.stages > 1 ? plan_.stages - 1 : 1;
    const double step = std::max((latency + work) / depth, work);
    const bool once = keeps_x(plan_);
    const double staging = staging_us(plan_, gpu_, rates_);
    const double piece = (once ? 0 : staging) +
                         (plan_.problem.layout == GemvLayout::R ? kButterfly : 0) +
                         (plan_.warps_k > 1 ? kStack : 0) + (depth > 1 ? latency : 0);
    const double steps = skew * static_cast<double>(plan_.units()) / (sms * places);
    const double pieces = skew * static_cast<double>(division_.pieces) / (sms * places);
    const double waves = std::max(1.0, blocks / (sms * places));
    const double all = steps * step + pieces * piece + (once ? waves * staging : 0) +
                       (waves - 1) * rates_.start_ns * 1e-3;
    return {std::max(0.0, all - latency), steps / depth * rates_.growth_ns * 1e-3};
  }
  [[nodiscard]] double issue() const noexcept {
    const double slots = gpu_.sms * kSchedulers * gpu_.clock_mhz * kIssueShare;
    const BlockFormat* blocks = block_format(plan_.problem);
    const double load_bytes = blocks != nullptr
                                  ? static_cast<double>(bytes(blocks->type, blocks->unit))
                                  : plan_.load_bytes;
    const double loads = static_cast<double>(matrix_.bytes) / (32.0 * load_bytes);
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
                         ? weights * info(problem.weights).block_values / bytes(problem.weights) *
                               x_bytes(problem) / plan_.rows
                         : 0;
    const double times = plan_.stages != 0 ? 3 : 1;  // into shared memory and out of it
    return (times * weights + x) / (kL1BytesInClock * kL1Share * gpu_.sms * gpu_.clock_mhz);
  }

 private:
  const GemvPlan& plan_;
  const ptx::Gpu& gpu_;
  const GpuRates& rates_;
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

Forecast forecast(const GemvPlan& plan, const ptx::Gpu& gpu, const GpuRates& rates,
                  const Weights& matrix, const Division& division) {
  const Traffic counts = traffic(plan, matrix, division);
  Forecast all;
  GemvPrediction& prediction = all.prediction;
  prediction.bytes_read = counts.bytes_read;
  prediction.bytes_written = counts.bytes_written;
  prediction.weight_requests = matrix.requests;
  prediction.weight_sectors = matrix.sectors;
  prediction.reductions = division.reductions;
  prediction.parts = division.parts;
  prediction.workspace_bytes = plan.workspace_bytes();
  prediction.registers = registers(plan, ptx::sm_of(gpu));
  prediction.blocks_per_sm = fitting_blocks(plan, gpu, max_registers(plan));
  if (prediction.blocks_per_sm == 0) return all;  // no target of the GPU allows such a plan

  const double sms = gpu.sms;
  const double blocks = plan.blocks;
  const auto weights = static_cast<double>(matrix.bytes);
  prediction.waves = blocks / (prediction.blocks_per_sm * sms);
  const auto busiest = static_cast<double>(division.busiest_bytes);
  prediction.tail_loss = busiest > 0 ? std::max(0.0, 1 - weights / sms / busiest) : 0;
  // Lanes and rows beyond the matrix's edge load nothing.
  const double filled =
      weights / (static_cast<double>(plan.units()) * static_cast<double>(step_bytes(plan)));
  const double places = std::min<double>(prediction.blocks_per_sm, std::ceil(blocks / sms));
  prediction.bytes_in_flight_per_sm = places * static_cast<double>(plan.bytes_in_flight()) * filled;

  const Stream stream(plan, gpu, rates, prediction, matrix, division);
  const double skew = 1 / (1 - prediction.tail_loss);
  all.even_us = stream.us(1);
  all.stream_us = stream.us(skew);
  GemvTerms& terms = prediction.terms;
  terms.boundary = plan.programmatic ? model::kProgrammaticUs : rates.graph_us;
  terms.blocks = stream.blocks();
  terms.latency = stream.sequence(skew, stream.loop_latency()).us;
  terms.dram = stream.dram();
  terms.issue = skew * stream.issue();
  terms.l1 = skew * stream.l1();
  terms.reduction = reduction_us(plan, division);
  prediction.bandwidth_gb_per_s = all.stream_us > 0 ? weights / all.stream_us * 1e-3 : 0;
  prediction.isolated_us = rates.stream_us + all.stream_us + terms.reduction;
  if (plan.programmatic) terms.reduction *= 1 - kHidden;
  prediction.chained_us = terms.boundary + all.stream_us + terms.reduction;
  const double rest = terms.boundary + terms.reduction;
  all.unshared_us = rest + stream.unshared_us(skew, 1);
  all.slow_us = rest + stream.unshared_us(skew, 2);
  prediction.error = error_band(Regime::Gemv, rates.measured);
  return all;
}

double bytes_in_flight_needed(const ptx::Gpu& gpu, const GpuRates& rates) noexcept {
  return rates.read_gb_per_s * (rates.latency_ns + rates.growth_ns) / gpu.sms;
}

}  // namespace ptxgen::inline v0::gemv
