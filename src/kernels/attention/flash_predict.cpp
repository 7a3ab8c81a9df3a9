// src/kernels/attention/flash_predict.cpp - predicted times of attention of many queries
#include "ptxgen/kernels/attention/flash_predict.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "kernels/model/law.hpp"
#include "ptx/occupancy.hpp"
#include "ptxgen/kernels/model/tensor.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

// ex2 of an SM in a clock; the CUDA programming guide's table of arithmetic throughput, 7.5 to 9.0.
constexpr double kPowers = 16;
// f32 instructions of a score beside its ex2: maximum, fma, sum, half a conversion.
constexpr double kScoreInstructions = 3.5;

// Nothing of the family was run on a GPU. Products and weights one after another give 65 % of the
// peak of an A100 and 44 % of an H100 with head_size 128; FlashAttention-2, whose loop has the same
// parts, reaches up to 73 % (its paper) and 39 %.
constexpr ErrorBand kUnproved{0.2, 0.4};

constexpr std::uint64_t kMaxSimulatedBlocks = 1u << 18;

/// What a kernel does, without a GPU.
struct Work {
  std::uint32_t tile_queries = 1, tile_keys = 1;
  double product_seconds = 0;  ///< of a step on an SM of its own
  double shared_bytes = 0;     ///< of a step, through shared memory
  std::uint32_t splits = 1;
  double part_bytes = 0;  ///< of a block, with splits
  ptx::BlockNeeds needs;
};

// Steps of the block that has queries from `first` on.
std::uint64_t block_steps(const FlashProblem& p, const Work& work, std::uint64_t first) {
  const auto end_of = [&](std::uint64_t query) {
    if (!p.causal) return std::uint64_t{p.keys};
    const std::uint64_t sum = query + 1 + p.keys;
    return sum < p.queries ? 0 : sum - p.queries;
  };
  const std::uint64_t end =
      end_of(std::min<std::uint64_t>(first + work.tile_queries, p.queries) - 1);
  const std::uint64_t lowest = end_of(first);
  const std::uint64_t begin = p.window == 0 || p.window > lowest ? 0 : lowest - p.window;
  const std::uint64_t tile = work.tile_keys;
  return end <= begin ? 0 : (end - 1) / tile - begin / tile + 1;
}

/// Steps of a launch: of all blocks, and of the SM that ends last.
struct Steps {
  double all = 0;
  double busiest = 0;
  double longest = 0;  ///< of a block
};

// Blocks go in order to the SM that has least to do.
Steps steps_of(const FlashProblem& p, const Work& work, std::uint32_t sms) {
  const std::uint64_t tiles = (p.queries - 1) / work.tile_queries + 1;
  const std::uint64_t heads = p.heads() * p.rows;
  Steps steps;
  std::vector<double> of_tile;
  const std::uint64_t counted = std::min<std::uint64_t>(tiles, kMaxSimulatedBlocks);
  for (std::uint64_t i = 0; i < counted; ++i) {
    std::uint64_t left = block_steps(p, work, (tiles - 1 - i) * work.tile_queries);
    const std::uint64_t each = (left + work.splits - 1) / work.splits;
    for (std::uint32_t split = 0; split < work.splits; ++split) {
      of_tile.push_back(static_cast<double>(std::min(each, left)));
      left -= std::min(each, left);
      steps.all += of_tile.back();
    }
    steps.longest = std::max(steps.longest, static_cast<double>(each));
  }
  steps.all *=
      static_cast<double>(tiles) / static_cast<double>(counted) * static_cast<double>(heads);
  if (tiles * heads * work.splits > kMaxSimulatedBlocks) {
    steps.busiest = std::max(steps.all / sms, steps.longest);
    return steps;
  }
  std::vector<double> idle(sms);
  std::priority_queue busy(std::greater<>{}, std::move(idle));
  for (std::uint64_t head = 0; head < heads; ++head) {
    for (const double block : of_tile) {
      const double end = busy.top() + block;
      busy.pop();
      busy.push(end);
      steps.busiest = std::max(steps.busiest, end);
    }
  }
  return steps;
}

// Products and weights follow one another, so together they are one limit; the larger names it.
std::string_view largest(const FlashTerms& terms) {
  const std::pair<double, std::string_view> all[] = {
      {terms.tensor + terms.exp, terms.tensor >= terms.exp ? "tensor" : "exp"},
      {terms.shared, "shared"},
      {terms.l2, "l2"},
      {terms.dram, "dram"},
      {terms.latency, "latency"},
      {terms.merge, "merge"},
      {terms.launch, "launch"}};
  return std::max_element(std::begin(all), std::end(all),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

FlashPrediction predicted(const FlashProblem& p, const LaunchGeometry& geometry, const Work& work,
                          const ptx::Gpu& gpu, double peak_tflops) {
  const GpuRates rates = rates_of(gpu);
  const double clock = gpu.clock_mhz * 1e6;
  const Steps steps = steps_of(p, work, gpu.sms);
  FlashPrediction prediction;
  prediction.blocks = std::uint64_t{geometry.grid.x} * geometry.grid.y * geometry.grid.z;
  prediction.blocks_per_sm = std::max(1u, ptx::blocks_per_sm(gpu, work.needs));
  FlashTerms& terms = prediction.terms;
  terms.launch = rates.graph_us;
  terms.tensor = steps.busiest * work.product_seconds * 1e6;
  const double scores = static_cast<double>(work.tile_queries) * work.tile_keys;
  const double score_seconds = 1 / kPowers / clock + model::fma_seconds(gpu, kScoreInstructions);
  terms.exp = steps.busiest * scores * score_seconds * 1e6;
  terms.shared = steps.busiest * work.shared_bytes / model::kSharedBytesPerClock / clock * 1e6;
  // Blocks of an SM wait at the same time.
  const double each = (rates.hit_ns - rates.start_ns) * 1e-3;
  terms.latency = std::max(steps.busiest / prediction.blocks_per_sm, steps.longest) * each;
  const double tile_bytes = 2 * static_cast<double>(bytes(p.cache, p.head_size)) * work.tile_keys;
  terms.l2 = steps.all * tile_bytes / model::l2_read_gb_per_s(gpu, rates) * 1e-3;
  const KernelCost cost = detail::flash_cost(p);
  const double dram = static_cast<double>(cost.bytes());
  const double written = static_cast<double>(cost.bytes_written) / dram;
  terms.dram = dram / model::mixed(rates, written).gb_per_s * 1e-3;
  if (work.splits > 1) {
    // Each part is written and read; in turn a store, the ticket and a load.
    const double parts = 2 * static_cast<double>(prediction.blocks) * work.part_bytes;
    terms.merge = parts / model::l2_read_gb_per_s(gpu, rates) * 1e-3 + 3e-3 * rates.latency_ns;
  }
  prediction.us =
      terms.launch + rates.latency_ns * 1e-3 + terms.merge +
      std::max({terms.tensor + terms.exp, terms.shared, terms.latency, terms.l2, terms.dram});
  prediction.bound_by = largest(terms);
  prediction.tflops = static_cast<double>(cost.flops) / prediction.us * 1e-6;
  prediction.share_of_peak = peak_tflops == 0 ? 0 : prediction.tflops / peak_tflops;
  prediction.error = kUnproved;
  return prediction;
}

}  // namespace

// Each tile is written once; each warp reads its queries and all keys and values.
FlashPrediction predict(const FlashAttentionTensorCore& kernel, const ptx::Gpu& gpu) {
  const FlashProblem& p = kernel.problem;
  const FlashMmaTileShape& shape = kernel.shape();
  const TensorRates rates = tensor_rates(gpu, p.cache);
  Work work;
  work.tile_queries = shape.queries;
  work.tile_keys = shape.keys;
  const double operations = 4.0 * shape.queries * shape.keys * p.head_size;
  work.product_seconds = operations / (rates.mma_tflops() * 1e12 / gpu.sms);
  constexpr std::uint32_t kTileWarps = FlashAttentionTensorCore::kThreads / 32;
  work.shared_bytes = 2.0 * p.head_size * (shape.queries + 2.0 * (1 + kTileWarps) * shape.keys);
  work.needs.threads = FlashAttentionTensorCore::kThreads;
  work.needs.registers = ptx::max_registers(gpu.registers_per_sm, work.needs.threads, 2);
  work.needs.dynamic_shared = work.needs.max_dynamic_shared = kernel.shared_bytes();
  work.splits = kernel.splits;
  work.part_bytes = static_cast<double>(kernel.part_bytes());
  return predicted(p, kernel.geometry(), work, gpu, rates.peak_tflops);
}

// Both warpgroups read all keys and values from shared memory, their own queries in each step; a
// tensor copy writes each tile once. Products are at the full rate: added to the weights that gives
// 58 % of the peak of an H100 for large problems with heads of 128. FlashAttention-3 without the
// overlap of products and weights within a warpgroup, which has the same parts, reaches 58 to 59 %
// (its paper, arXiv 2407.08608, ablations: 570 and 582 of 989 TFLOP/s).
FlashPrediction predict(const FlashAttentionWgmma& kernel, const ptx::Gpu& gpu) {
  const FlashProblem& p = kernel.problem;
  const FlashWgmmaTileShape& shape = kernel.shape();
  const TensorRates rates = tensor_rates(gpu, p.cache);
  Work work;
  work.tile_queries = shape.queries;
  work.tile_keys = shape.keys;
  const double operations = 4.0 * shape.queries * shape.keys * p.head_size;
  work.product_seconds = operations / (rates.peak_tflops * 1e12 / gpu.sms);
  work.shared_bytes = 2.0 * p.head_size *
                      (shape.queries + 2.0 * (1 + FlashAttentionWgmma::kConsumers) * shape.keys);
  work.needs.threads = FlashAttentionWgmma::kThreads;
  work.needs.registers = ptx::max_registers(gpu.registers_per_sm, work.needs.threads, 1);
  work.needs.dynamic_shared = work.needs.max_dynamic_shared = kernel.shared_bytes();
  return predicted(p, kernel.geometry(), work, gpu, rates.peak_tflops);
}

// A warp has 8 queries. For 4 elements it loads 16 bytes of each of its queries, which 16 lanes
// share, and of each key; for 4 keys their weights, and 4 rows of values.
FlashPrediction predict(const FlashAttention& kernel, const ptx::Gpu& gpu) {
  const FlashProblem& p = kernel.problem;
  const FlashTileShape& shape = kernel.shape();
  Work work;
  work.tile_queries = shape.queries;
  work.tile_keys = shape.keys;
  const double products = 2.0 * shape.queries * shape.keys * p.head_size;
  work.product_seconds = model::fma_seconds(gpu, products);
  const double warps = shape.queries / 8.0;
  const double of_scores = p.head_size / 4.0 * (4 + shape.keys / 8.0);
  const double of_values = shape.keys / 4.0 * (4 + p.head_size / 8.0);
  work.shared_bytes = warps * (of_scores + of_values) * model::kSharedBytesPerClock;
  work.needs.threads = kernel.threads();
  work.needs.registers = p.head_size > 128 ? 255 : 128;
  work.needs.dynamic_shared = work.needs.max_dynamic_shared = kernel.shared_bytes();
  return predicted(p, kernel.geometry(), work, gpu, 0);
}

namespace {

/// The fastest of the kernels that it was shown.
struct Fastest {
  const ptx::Gpu& gpu;
  std::optional<FlashPlan> plan = {};
  double us = INFINITY;

  template <class K>
  void see(const K& kernel) {
    const double predicted = predict(kernel, gpu).us;
    if (predicted >= us) return;
    us = predicted;
    plan = kernel;
  }
};

// More than the target, or a thread, has.
template <class K>
bool refused(const K& kernel, const ptx::Target& target) {
  try {
    check(kernel, target);
  } catch (const Error&) {
    return true;
  }
  return false;
}

constexpr std::uint32_t kPlannedSplits[] = {1, 2, 4, 8, 16, 32, 64};

}  // namespace

FlashPlan plan_flash(const FlashProblem& problem, const ptx::Gpu& gpu) {
  const ptx::Target& target = ptx::target(gpu.target);
  Fastest fastest{gpu};
  for (std::size_t tile = 1; tile < std::size(kFlashMmaTiles); ++tile) {
    FlashAttentionTensorCore kernel{problem, static_cast<FlashMmaTile>(tile)};
    if (refused(kernel, target)) continue;
    for (const std::uint32_t splits : kPlannedSplits) {
      kernel.splits = splits;
      const std::uint64_t blocks = kernel.geometry().grid.x * problem.heads() * problem.rows;
      // More than four blocks for each SM only cost.
      if (splits > 1 && blocks > 4 * std::uint64_t{gpu.sms}) break;
      fastest.see(kernel);
    }
  }
  for (const Word<FlashWgmmaTile>& tile : detail::kFlashWgmmaTileWords) {
    const FlashAttentionWgmma kernel{problem, tile.value};
    if (!refused(kernel, target)) fastest.see(kernel);
  }
  // None: for the reason of the usual one.
  if (!fastest.plan) check(FlashAttentionTensorCore{problem}, target);
  return fastest.plan.value();
}

std::string to_text(const FlashPlan& plan) {
  return std::visit(
      []<class K>(const K& kernel) {
        std::string text = format_text("{} {}", kernel_name<K>, kernel.shape().name);
        if constexpr (requires { kernel.splits; }) {
          if (kernel.splits > 1) text += format_text(", {} splits", kernel.splits);
        }
        return text;
      },
      plan);
}

}  // namespace ptxgen::inline v0
