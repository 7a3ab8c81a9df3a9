// src/kernels/gemm/planner.cpp - the best kernel of a matrix product for a GPU
#include "ptxgen/kernels/gemm/planner.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "kernels/parts/products.hpp"
#include "ptxgen/kernels/model/tensor.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr double kTie = 0.005;
constexpr std::uint32_t kStages[] = {2, 3, 4};
constexpr std::uint32_t kSplits[] = {1, 2, 4, 8, 16};

std::uint64_t shared_of(const GemmKernel& kernel) {
  if (const auto* mma = std::get_if<GemmMma>(&kernel)) return mma->shared_bytes();
  if (const auto* wgmma = std::get_if<GemmWgmma>(&kernel)) return wgmma->shared_bytes();
  return 0;
}

// Times as powers of 1 + kTie: equal numbers are a tie, and the order is one.
long step_of(const GemmCandidate& candidate) {
  return std::lround(std::log(candidate.prediction.us) / std::log1p(kTie));
}

// Sums are shared only where tiles alone leave SMs idle.
bool fits(const GemmMma& kernel, const ptx::Gpu& gpu) {
  const std::uint32_t step = kernel.step() * kernel.splits;
  const bool divides =
      kernel.splits == 1 || (kernel.problem.k % step == 0 && kernel.tiles() < 2u * gpu.sms);
  const GemmProblem& p = kernel.problem;
  const bool converts = !kernel.converts_b() || (p.transpose_b && p.k % kernel.step() == 0);
  // There the code has two stages whatever is asked for.
  const bool adjacent = p.type != ElementType::e4m3 || (!p.transpose_a && p.transpose_b);
  const bool one_of_all = ptx::sm_of(gpu) >= kAsyncSm || kernel.stages == 2;
  return divides && converts && adjacent && one_of_all &&
         kernel.shared_bytes() <= gpu.shared_per_block;
}

template <class Kernel>
void add(std::vector<GemmCandidate>& all, const Kernel& kernel, const ptx::Gpu& gpu) {
  GemmCandidate candidate{kernel, predict(kernel, gpu), {}};
  const GemmPrediction& p = candidate.prediction;
  candidate.why = format_text("{} bound, {:.1f} TFLOP/s, {:.2f} blocks for each SM", p.bound_by,
                              p.tflops, p.waves);
  all.push_back(std::move(candidate));
}

// The same with as many blocks as are on the GPU at a time, which divide the tiles of the last
// wave.
std::optional<GemmMma> with_blocks(GemmMma kernel, const ptx::Gpu& gpu) {
  const std::uint32_t unit = kernel.stages * kernel.step();
  if (kernel.splits != 1 || kernel.problem.batch != 1 || kernel.problem.k % unit != 0) return {};
  const std::uint32_t resident = predict(kernel, gpu).blocks_per_sm;
  kernel.blocks = std::min(GemmMma::kMaxBlocks, gpu.sms * resident);
  const std::uint64_t units = std::uint64_t{2} * kernel.blocks * (kernel.problem.k / unit);
  const bool divides = kernel.tiles() % kernel.blocks != 0 && units >> 32 == 0;
  return divides ? std::optional(kernel) : std::nullopt;
}

// As many stages as fit; clusters first, which read less from the L2; persistent blocks where there
// is more than a tile for each.
void add_wgmma(std::vector<GemmCandidate>& all, const GemmProblem& problem, const ptx::Gpu& gpu) {
  const ptx::Target& target = ptx::target(gpu.target);
  // Where the smallest plan is refused, it is for the problem or the target.
  if (!serves(GemmWgmma{problem, WgmmaTile::t128x128x64, 2}, target)) return;
  for (const Word<WgmmaTile>& tile : detail::kWgmmaTileWords) {
    for (std::uint32_t stages = 6; stages >= 3; --stages) {
      for (const std::uint32_t cluster : {2u, 1u}) {
        GemmWgmma kernel{problem, tile.value, stages, cluster};
        if (kernel.shared_bytes() > gpu.shared_per_block) continue;
        add(all, kernel, gpu);
        kernel.blocks = gpu.sms / cluster * cluster;
        const bool whole_rounds = kernel.steps() % stages == 0;
        if (problem.batch != 1 || !whole_rounds) continue;
        if (kernel.tiles() > kernel.blocks) add(all, kernel, gpu);
        kernel.stream_k = true;
        if (kernel.tiles() % kernel.blocks != 0 && serves(kernel, target)) add(all, kernel, gpu);
      }
    }
  }
}

// No kernel has the problem: its layout, or the GPU.
[[noreturn]] void refuse_eight_bits(const GemmProblem& problem, const ptx::Gpu& gpu) {
  check(GemmMma{problem, GemmTile::t32x32x32, 2}, ptx::target(gpu.target));
  throw std::logic_error("a product of e4m3 has no plan");
}

}  // namespace

std::vector<GemmCandidate> rank_gemm_plans(const GemmProblem& problem, const ptx::Gpu& gpu) {
  check(problem);
  std::vector<GemmCandidate> all;
  const bool tensor_cores =
      problem.type != ElementType::f32 && tensor_rates(gpu, problem.type).peak_tflops > 0;
  for (std::size_t tile = 0; tensor_cores && tile < std::size(kGemmTiles); ++tile) {
    for (const std::uint32_t stages : kStages) {
      for (const std::uint32_t splits : kSplits) {
        const GemmMma kernel{problem, static_cast<GemmTile>(tile), stages, splits};
        if (!fits(kernel, gpu)) continue;
        add(all, kernel, gpu);
        if (const auto divided = with_blocks(kernel, gpu)) add(all, *divided, gpu);
      }
    }
  }
  add_wgmma(all, problem, gpu);
  const bool eight_bits = problem.type == ElementType::e4m3;
  for (const Word<std::uint32_t>& tile : kGemmSquareTiles) {
    if (!eight_bits) add(all, GemmTiled{problem, tile.value}, gpu);
  }
  if (!eight_bits) add(all, GemmNaive{problem}, gpu);
  if (all.empty()) refuse_eight_bits(problem, gpu);
  std::stable_sort(all.begin(), all.end(), [](const GemmCandidate& a, const GemmCandidate& b) {
    const long first = step_of(a);
    const long second = step_of(b);
    return first != second ? first < second : shared_of(a.kernel) < shared_of(b.kernel);
  });
  return all;
}

std::string to_text(const GemmKernel& kernel) {
  if (const auto* mma = std::get_if<GemmMma>(&kernel)) {
    const std::string plan = format_text("gemm_mma {}, {} stages", mma->shape().name, mma->stages);
    if (mma->blocks != 0) return format_text("{}, {} blocks that divide tiles", plan, mma->blocks);
    return mma->splits == 1 ? plan : format_text("{}, {} splits", plan, mma->splits);
  }
  if (const auto* tiled = std::get_if<GemmTiled>(&kernel)) {
    return format_text("gemm_tiled {}x{}", tiled->tile, tiled->tile);
  }
  if (const auto* wgmma = std::get_if<GemmWgmma>(&kernel)) {
    std::string plan = format_text("gemm_wgmma {}, {} stages", wgmma->shape().name, wgmma->stages);
    if (wgmma->cluster != 1) plan += format_text(", clusters of {}", wgmma->cluster);
    if (wgmma->blocks != 0) plan += format_text(", {} blocks", wgmma->blocks);
    if (wgmma->stream_k) plan += " that divide tiles";
    return plan;
  }
  return "gemm_naive";
}

}  // namespace ptxgen::inline v0
