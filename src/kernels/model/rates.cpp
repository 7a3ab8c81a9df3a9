// src/kernels/model/rates.cpp - the rates of a GPU that predictions use
#include "ptxgen/kernels/model/rates.hpp"

#include <algorithm>

namespace ptxgen::inline v0 {

namespace {

// Start and end of a block, in clocks: the life of one that only stores, 370 to 450 on V100, A100,
// A40 and H100 (gpu-stream's init). What is left of the latency is that of a load in a loop: 524
// clocks on A100 and 672 on H100 PCIe, where pointer chases over all of memory take 572 and 655
// (gpu-latency).
constexpr double kStartClocks = 430;
// A block that lives for one L2 hit, as a share of one that lives for one load from DRAM (blocks of
// 1024 threads in gpu-small-kernels, which are one on an SM of L40 and A40).
constexpr double kHitLatency = 0.75;

// What stays in the L2, as shares of its size, fitted to gpu-small-kernels. L2 caches of GPUs with
// HBM have two halves that hold copies of each other's lines.
struct L2Shares {
  double fits, misses;
};
constexpr L2Shares kHbmL2{0.6, 1.06};
constexpr L2Shares kGddrL2{0.82, 1.7};

double clocks(const ptx::Gpu& gpu, double ns) noexcept { return ns * gpu.clock_mhz * 1e-3; }

double l2_clocks(const ptx::Gpu& gpu) noexcept { return gpu.sms * gpu.clock_mhz * 1e-3; }

// How far a GPU is from another: 0 the same architecture, 1 the same memory, 2 neither.
int distance(const ptx::Gpu& a, const ptx::Gpu& b) noexcept {
  if (ptx::sm_of(a) == ptx::sm_of(b)) return 0;
  return a.dram == b.dram ? 1 : 2;
}

// The mean of `figure` over the nearest GPUs that have it (not 0); 0 if none has.
template <class Figure>
double nearest_mean(const ptx::Gpu& gpu, std::span<const ptx::Gpu> known, const Figure& figure) {
  double sum = 0;
  int count = 0;
  int nearest = 3;
  for (const ptx::Gpu& other : known) {
    const double value = figure(other);
    const int far = distance(gpu, other);
    if (value == 0 || far > nearest) continue;
    if (far < nearest) sum = count = 0;
    nearest = far;
    sum += value;
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

}  // namespace

GpuRates rates_of(const ptx::Gpu& gpu, std::span<const ptx::Gpu> known) {
  // What was measured, or else the mean `figure` of the nearest GPUs.
  const auto rate = [&](double measured, const auto& figure, double unit) {
    return measured != 0 ? measured : nearest_mean(gpu, known, figure) * unit;
  };
  const ptx::MeasuredRates& own = gpu.measured;
  const double clock = 1e3 / gpu.clock_mhz;  // ns
  GpuRates rates;
  rates.measured = own.read_share != 0 && own.latency_ns != 0 && own.growth_ns != 0;
  const double share = rate(
      own.read_share, [](const ptx::Gpu& g) { return g.measured.read_share; }, 1);
  rates.read_gb_per_s = share * gpu.bandwidth_gb_per_s;
  rates.latency_ns = rate(
      own.latency_ns, [](const ptx::Gpu& g) { return clocks(g, g.measured.latency_ns); }, clock);
  rates.growth_ns = rate(
      own.growth_ns,
      [](const ptx::Gpu& g) {
        return g.measured.growth_ns == 0 ? 0 : g.measured.growth_ns / g.measured.latency_ns;
      },
      rates.latency_ns);
  rates.start_ns = kStartClocks * clock;
  rates.hit_ns = kHitLatency * rates.latency_ns;
  rates.block_ns = clock * rate(
                               own.clocks_per_block,
                               [](const ptx::Gpu& g) { return g.measured.clocks_per_block; }, 1);
  // At least what DRAM gives it.
  rates.l2_gb_per_s = std::max(
      rates.read_gb_per_s,
      rate(
          own.l2_gb_per_s, [](const ptx::Gpu& g) { return g.measured.l2_gb_per_s / l2_clocks(g); },
          l2_clocks(gpu)));
  const L2Shares& l2 = gpu.dram == ptx::Dram::HBM ? kHbmL2 : kGddrL2;
  rates.l2_fits_bytes = l2.fits * static_cast<double>(gpu.l2_bytes);
  rates.l2_misses_bytes = l2.misses * static_cast<double>(gpu.l2_bytes);
  rates.stream_us = rate(
      own.stream_us, [](const ptx::Gpu& g) { return g.measured.stream_us; }, 1);
  rates.graph_us = rate(
      own.graph_us, [](const ptx::Gpu& g) { return g.measured.graph_us; }, 1);
  return rates;
}

GpuRates rates_of(const ptx::Gpu& gpu) { return rates_of(gpu, ptx::gpus()); }

}  // namespace ptxgen::inline v0
