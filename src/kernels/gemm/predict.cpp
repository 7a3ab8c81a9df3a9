// src/kernels/gemm/predict.cpp - predicted times of matrix products
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "kernels/gemm/staged_operand.hpp"
#include "kernels/gemm/tile_division.hpp"
#include "kernels/model/law.hpp"
#include "ptx/occupancy.hpp"
#include "ptxgen/kernels/gemm/planner.hpp"
#include "ptxgen/kernels/model/tensor.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr double kIssuedPerClock = 128;      // threads whose instructions an SM issues
constexpr double kStoredBytesPerClock = 64;  // from an SM to the L2

// Stores, fence, ticket, loads: as of GEMV plans.
constexpr double kTicketUs = 1.5;

// Instructions of a thread for a value of B that is dequantised and rounded: an estimate from what
// the formats need, about 4.5 (q4_0) to 8 (q6_k).
constexpr double kConvertInstructions = 6;

// Nothing of the family was run on a GPU; the shares of tensor_rates are two published figures
// each.
constexpr ErrorBand kUnproved{0.1, 0.25};

// Of a value of B as stored.
double value_bytes_b(const GemmProblem& p) {
  const ElementInfo& type = info(p.type_b());
  return static_cast<double>(type.block_bytes) / type.block_values;
}

double tiles_of(std::uint32_t outputs, std::uint32_t tile) {
  return static_cast<double>((outputs - 1) / tile + 1);
}

/// What a kernel does, without a GPU.
struct Work {
  double tiles_m = 1, tiles_n = 1;
  double tile_m = 1, tile_n = 1;
  double terms = 1;         ///< of a sum, with those that fill the last step
  double steps = 1;         ///< one after another
  double shared_bytes = 0;  ///< of a block, through shared memory
  double splits = 1;        ///< blocks that share a tile
  double cluster = 1;       ///< blocks that share columns of B by multicast
  double workers = 0;       ///< blocks that compute all tiles; 0: a block for each
  /// How they divide the tiles, if they do; seconds of the fix-up in which nothing is multiplied.
  std::optional<gemm::TileShares> shares;
  double fix_seconds = 0;
  double output_seconds = 0;  ///< of a tile's outputs, where no other block multiplies meanwhile
  double ahead = 1;           ///< steps that are on their way
  double pass_seconds = 0;    ///< arithmetic of one tile on an SM of its own
  ptx::BlockNeeds needs;
};

std::string_view largest(const GemmTerms& terms) {
  const std::pair<double, std::string_view> all[] = {
      {terms.tensor, "tensor"},   {terms.dram, "dram"},          {terms.l2, "l2"},
      {terms.shared, "shared"},   {terms.latency, "latency"},    {terms.launch, "launch"},
      {terms.outputs, "outputs"}, {terms.reduction, "reduction"}};
  return std::max_element(std::begin(all), std::end(all),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

// Bytes from DRAM: A and C once; B once, or if it does not fit the L2 beside a group of rows of A,
// for each group.
double dram_bytes(const GemmProblem& p, const Work& work, const GpuRates& rates) {
  const KernelCost cost = detail::gemm_cost(p);
  const double b = static_cast<double>(p.n) * p.k * value_bytes_b(p) *
                   (p.stride_b == 0 ? 1.0 : static_cast<double>(p.batch));
  const double group =
      GemmMma::kGroupedTiles * work.tile_m * static_cast<double>(p.k) * bytes(p.type);
  const double groups = std::ceil(work.tiles_m / GemmMma::kGroupedTiles);
  const bool kept = b + group <= rates.l2_fits_bytes;
  return static_cast<double>(cost.bytes()) + (kept ? 0 : b * (groups - 1));
}

// Bytes of sums of f32 of a block's tile.
double sum_bytes(const Work& work) { return 4 * work.tile_m * work.tile_n; }

// Tiles of the SM that has the most. Of blocks that divide tiles the first SM has the first and
// every `sms`-th after it; those with the larger shares come first.
double busiest(const GemmProblem& p, const Work& work, double blocks, const ptx::Gpu& gpu) {
  if (!work.shares) return std::ceil(blocks / (work.workers == 0 ? gpu.sms : work.workers));
  if (p.batch != 1) return work.shares->of(0) * std::ceil(work.workers * p.batch / gpu.sms);
  const auto cluster = static_cast<std::uint32_t>(work.cluster);
  double tiles = 0;
  for (std::uint32_t worker = 0; worker < work.shares->workers; worker += gpu.sms / cluster) {
    tiles += work.shares->of(worker);
  }
  return tiles;
}

// Bytes of partial sums, stored and read again: all of splits; of stream-K about one part for each
// block, since that which is first of its tile stays in registers.
double partial_bytes(const GemmProblem& p, const Work& work, double blocks) {
  if (work.shares) return 2 * work.workers * p.batch * sum_bytes(work);
  return work.splits == 1 ? 0 : 2 * blocks * sum_bytes(work);
}

GemmPrediction predicted(const GemmProblem& p, const Work& work, const ptx::Gpu& gpu,
                         double peak_tflops) {
  const GpuRates rates = rates_of(gpu);
  const double blocks = work.tiles_m * work.tiles_n * p.batch * work.splits;
  const double on_busiest = busiest(p, work, blocks, gpu);
  // Under products an SM has the clock at which their rate is counted.
  const bool products = peak_tflops != 0 && gpu.tensor.clock_mhz != 0;
  const double clock = (products ? gpu.tensor.clock_mhz : gpu.clock_mhz) * 1e6;
  GemmPrediction prediction;
  prediction.blocks = static_cast<std::uint64_t>(blocks);
  prediction.blocks_per_sm = std::max(1u, ptx::blocks_per_sm(gpu, work.needs));
  prediction.waves = blocks / gpu.sms;
  GemmTerms& terms = prediction.terms;
  terms.launch = rates.graph_us;
  terms.tensor = on_busiest * work.pass_seconds * 1e6;
  terms.shared = on_busiest * work.shared_bytes / model::kSharedBytesPerClock / clock * 1e6;
  const double each = (rates.hit_ns - rates.start_ns) * 1e-3;  // of a load from the L2
  const double resident = std::min<double>(prediction.blocks_per_sm, on_busiest);
  const double one_after_another =
      work.shares ? on_busiest / resident : std::ceil(on_busiest / resident);
  terms.latency = one_after_another * (work.steps / work.ahead * each + rates.latency_ns * 1e-3);
  const double term_bytes =
      work.tile_m * bytes(p.type) + work.tile_n / work.cluster * value_bytes_b(p);
  const double parts = partial_bytes(p, work, blocks);
  const double l2_bytes = blocks * term_bytes * work.terms + (work.shares ? parts : 0);
  terms.l2 = l2_bytes / model::l2_read_gb_per_s(gpu, rates) * 1e-3;
  const KernelCost cost = detail::gemm_cost(p);
  const double written = static_cast<double>(cost.bytes_written);
  const double dram = dram_bytes(p, work, rates);
  terms.dram = dram / model::mixed(rates, written / dram).gb_per_s * 1e-3;
  // Partial sums of splits come after all products, those of stream-K beside them.
  if (work.shares) {
    terms.reduction = work.fix_seconds * 1e6;
  } else if (parts != 0) {
    terms.reduction = parts / rates.l2_gb_per_s * 1e-3 + kTicketUs;
  }
  // The first copies of a block are before its first product. Shares of tensor cores were measured
  // of whole kernels, whose copies ran beside, so the largest term is the time.
  terms.outputs = (work.workers == 0 ? on_busiest : 1) * work.output_seconds * 1e6;
  prediction.us = terms.launch + rates.latency_ns * 1e-3 + terms.reduction + terms.outputs +
                  std::max({terms.tensor, terms.shared, terms.latency, terms.l2, terms.dram});
  prediction.bound_by = largest(terms);
  prediction.tflops = static_cast<double>(cost.flops) / prediction.us * 1e-6;
  prediction.share_of_peak = peak_tflops == 0 ? 0 : prediction.tflops / peak_tflops;
  prediction.error = kUnproved;
  return prediction;
}

/// What blocks that divide tiles do besides: a block stores one part, and loads those of others of
/// the tile that it completes, from and to the L2 at 64 bytes a clock, with a ticket each.
struct FixUp {
  double store, load;  ///< seconds
  bool last;           ///< no whole tiles follow
};
FixUp fix_up(const Work& work, const ptx::Gpu& gpu) {
  const double part = sum_bytes(work) / kStoredBytesPerClock / (gpu.clock_mhz * 1e6);
  const double others = static_cast<double>(work.shares->parts()) - 1;
  return {part, others * part, work.shares->divided() == work.shares->tiles};
}

double terms_of(std::uint32_t k, std::uint32_t step) {
  return static_cast<double>((k - 1) / step + 1) * step;
}

// Whether a block of an SM has its last divided tile before that of the next rank has its first,
// which comes a run of steps after its undivided tiles. While the first is in its fix-ups the next
// one has the tensor cores for itself, and is ahead of it by as many tiles.
bool apart(const Work& work, double fix_seconds) {
  const gemm::TileShares& shares = *work.shares;
  const std::uint32_t last = shares.ranks - 1;
  const auto between = static_cast<double>(shares.before(last) - shares.before(last - 1));
  const double ahead = fix_seconds / work.pass_seconds;
  return shares.divided_of(0) + ahead <= between + 1.0 / shares.units;
}

// While one block of an SM is in its fix-up the others multiply; if all are, none does. Where ranks
// do not keep them apart, their times are not known, and the mean of both is taken.
void divide(Work& work, const GemmMma& kernel, const ptx::Gpu& gpu) {
  const std::uint32_t unit = kernel.stages * kernel.step();
  work.workers = kernel.blocks;
  work.shares = {kernel.tiles() / kernel.problem.batch, kernel.blocks, kernel.problem.k / unit,
                 gemm::resident_blocks(kernel, ptx::sm_of(gpu))};
  const FixUp fix = fix_up(work, gpu);
  const std::uint32_t fit = std::max(1u, ptx::blocks_per_sm(gpu, work.needs));
  const std::uint32_t resident = std::min(fit, (kernel.blocks - 1) / gpu.sms + 1);
  const double ticket = kTicketUs * 1e-6;
  const double all = resident * (fix.store + fix.load) + ticket;
  const bool ranked = kernel.blocks == resident * gpu.sms && resident == work.shares->ranks;
  if (resident == 1 || fix.last) {
    work.fix_seconds = all;
  } else if (!ranked || !apart(work, fix.store + fix.load + ticket)) {
    work.fix_seconds = all / 2;
  }
}

// A warpgroup in its fix-up stops the other one once the ring is `stages` steps ahead of it; each
// has a half of the sums, and two fix-ups with a half of the ticket's time each.
void divide(Work& work, const GemmWgmma& kernel, const ptx::Gpu& gpu) {
  work.shares = {kernel.tiles() / kernel.cluster, kernel.blocks / kernel.cluster, kernel.steps()};
  const FixUp fix = fix_up(work, gpu);
  const double ticket = kTicketUs * 1e-6;
  if (fix.last) {
    work.fix_seconds = fix.store + fix.load + ticket;
    return;
  }
  constexpr double kHalf = 1.0 / GemmWgmma::kConsumers;
  const double ahead = kernel.stages * work.pass_seconds / work.steps * kHalf;
  const auto exposed = [&](double part) {
    return std::max(0.0, part * kHalf + ticket / 2 - ahead);
  };
  work.fix_seconds = GemmWgmma::kConsumers * (exposed(fix.store) + exposed(fix.load));
}

}  // namespace

GemmPrediction predict(const GemmMma& kernel, const ptx::Gpu& gpu) {
  const GemmProblem& p = kernel.problem;
  const GemmTileShape& shape = kernel.shape();
  const TensorRates rates = tensor_rates(gpu, p.type);
  Work work;
  work.tiles_m = tiles_of(p.m, shape.m);
  work.tiles_n = tiles_of(p.n, shape.n);
  work.tile_m = shape.m;
  work.tile_n = shape.n;
  work.splits = kernel.splits;
  work.terms = terms_of(p.k, kernel.step()) / work.splits;
  work.steps = work.terms / kernel.step();
  work.ahead = kernel.stages - 1;
  // Each element is written once; rows of A are read by each column of warps, and the other way
  // round.
  const double read = shape.m * shape.warps_n + shape.n * shape.warps_m;
  work.shared_bytes = work.terms * bytes(p.type) * (shape.m + shape.n + read);
  const double flops = 2.0 * shape.m * shape.n * work.terms;
  work.pass_seconds = flops / (rates.mma_tflops() * 1e12 / gpu.sms);
  if (kernel.converts_b()) {
    // In the issue slots of the products.
    const double values = shape.n * work.terms;
    work.pass_seconds += values * kConvertInstructions / kIssuedPerClock / (gpu.clock_mhz * 1e6);
  }
  work.needs.threads = shape.threads();
  work.needs.registers = ptx::max_registers(gpu.registers_per_sm, shape.threads(),
                                            gemm::resident_blocks(kernel, ptx::sm_of(gpu)));
  work.needs.dynamic_shared = work.needs.max_dynamic_shared = kernel.shared_bytes();
  if (kernel.blocks != 0) divide(work, kernel, gpu);
  return predicted(p, work, gpu, rates.peak_tflops);
}

// One block of three warpgroups is on an SM. The two that multiply are independent but for the
// ring: with persistent blocks, one stores its outputs while the other, up to `stages` steps later,
// multiplies at the full rate, and only the last outputs of that one are alone.
GemmPrediction predict(const GemmWgmma& kernel, const ptx::Gpu& gpu) {
  const GemmProblem& p = kernel.problem;
  const WgmmaTileShape& shape = kernel.shape();
  const TensorRates rates = tensor_rates(gpu, p.type);
  Work work;
  work.tiles_m = tiles_of(p.m, shape.m * kernel.cluster) * kernel.cluster;
  work.tiles_n = tiles_of(p.n, shape.n);
  work.tile_m = shape.m;
  work.tile_n = shape.n;
  work.terms = terms_of(p.k, kernel.step());
  work.steps = work.terms / kernel.step();
  work.ahead = kernel.stages - 1;
  work.cluster = kernel.cluster;
  work.workers = kernel.blocks;
  // Copied once; rows of A are read by their warpgroup, columns of B by both.
  const double read = shape.m + shape.n * GemmWgmma::kConsumers;
  work.shared_bytes = work.terms * bytes(p.type) * (shape.m + shape.n + read);
  const double flops = 2.0 * shape.m * shape.n * work.terms;
  work.pass_seconds = flops / (rates.peak_tflops * rates.wgmma_share * 1e12 / gpu.sms);
  const double outputs = static_cast<double>(shape.m) * shape.n;
  const double clocks =
      outputs * (8 / model::kSharedBytesPerClock + bytes(p.c) / kStoredBytesPerClock);
  work.output_seconds = clocks / (gpu.clock_mhz * 1e6);
  if (kernel.blocks != 0) work.output_seconds /= GemmWgmma::kConsumers;
  work.needs.threads = GemmWgmma::kThreads;
  work.needs.registers = ptx::max_registers(gpu.registers_per_sm, GemmWgmma::kThreads, 1);
  work.needs.dynamic_shared = work.needs.max_dynamic_shared = kernel.shared_bytes();
  if (kernel.stream_k) divide(work, kernel, gpu);
  return predicted(p, work, gpu, rates.peak_tflops);
}

// For each term a warp loads the outputs of its lanes of A, of which 16 lanes have the same, and of
// B, 128 bytes at a time; with one output of a thread a product is two loads.
GemmPrediction predict(const GemmTiled& kernel, const ptx::Gpu& gpu) {
  const GemmProblem& p = kernel.problem;
  Work work;
  work.tiles_m = tiles_of(p.m, kernel.tile);
  work.tiles_n = tiles_of(p.n, kernel.tile);
  work.tile_m = work.tile_n = kernel.tile;
  work.terms = terms_of(p.k, kernel.tile);
  work.steps = work.terms / kernel.terms();
  const double products = static_cast<double>(kernel.tile) * kernel.tile * work.terms;
  const double each = kernel.outputs();
  const double wavefronts = each == 1 ? 2 : each / 4 * 3;  // of a warp and term
  work.shared_bytes = products / 32 / (each * each) * wavefronts * model::kSharedBytesPerClock;
  work.pass_seconds = model::fma_seconds(gpu, products);
  if (info(p.type_b()).block_values != 1) {
    const double values = kernel.tile * work.terms;
    work.pass_seconds += values * kConvertInstructions / kIssuedPerClock / (gpu.clock_mhz * 1e6);
  }
  work.needs.threads = kernel.geometry().block.x * kernel.geometry().block.y;
  work.needs.registers = each == 1 ? 32 : each == 4 ? 64 : 128;
  work.needs.static_shared = kernel.shared_bytes();
  return predicted(p, work, gpu, 0);
}

// Each product is two loads from global memory, 8 bytes of the L1 for each lane.
GemmPrediction predict(const GemmNaive& kernel, const ptx::Gpu& gpu) {
  const GemmProblem& p = kernel.problem;
  constexpr std::uint32_t kTile = GemmNaive::kTile;
  Work work;
  work.tiles_m = tiles_of(p.m, kTile);
  work.tiles_n = tiles_of(p.n, kTile);
  work.tile_m = work.tile_n = kTile;
  work.terms = work.steps = p.k;
  const double products = static_cast<double>(kTile) * kTile * work.terms;
  work.shared_bytes = products / 32 * 4 * model::kSharedBytesPerClock;
  work.pass_seconds = model::fma_seconds(gpu, products);
  work.needs.threads = kTile * kTile;
  work.needs.registers = 40;
  return predicted(p, work, gpu, 0);
}

}  // namespace ptxgen::inline v0
