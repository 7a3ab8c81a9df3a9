// src/kernels/gemv/candidates.cpp - candidate GEMV plans
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>

#include "kernels/gemv/model.hpp"
#include "kernels/gemv/partition.hpp"
#include "ptx/occupancy.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

struct Warps {
  std::uint32_t out;
  std::uint32_t k;
};
constexpr Warps kWarps[] = {{4, 1}, {2, 2}, {1, 4}, {8, 1}, {4, 2}, {2, 4}, {1, 8}, {2, 1}, {1, 2}};
// Not only powers of two: matrix sizes mostly are, numbers of multiprocessors mostly are not, so
// uneven steps balance better.
constexpr std::uint32_t kUnrolls[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16};
constexpr std::uint32_t kRows[] = {1, 2, 4};
// Rings hold data in flight in shared memory instead of registers, so small steps suffice.
constexpr std::uint32_t kRingUnrolls[] = {1, 2, 4};
constexpr std::uint32_t kRingStages[] = {4, 8};
constexpr std::uint32_t kBlockStages[] = {2, 3, 4};
constexpr std::uint32_t kClusters[] = {8, 4, 2};
constexpr std::uint32_t kMaxBlockRegisters = 128;
constexpr std::uint32_t kMaxPlannedLoads = 16;  // of a lane: more take too many registers
// Range of bytes in flight, as multiples of those that the full read rate needs.
constexpr double kMinFlight = 0.75;
constexpr double kMaxFlight = 5;
constexpr std::uint64_t kMaxBlocks = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxWorkspace = std::uint64_t{5} << 18;  // 1.25 MiB

// Before sm_90 relocatable code of q6_k (what nvJitLink makes) spills with two rows a warp, unless
// the row is one step, or eight warps share it; with four rows in any case.
bool spills(const GemvPlan& plan, const BlockFormat& format, std::uint16_t sm) {
  if (sm >= 90 || plan.stages != 0 || plan.rows == 1) return false;
  if (format.type != ElementType::q6_k) return false;
  const bool one_step = plan.warps_k == 1 && plan.problem.k <= format.step_weights();
  return plan.rows > 2 || (!one_step && plan.warps_k != 8);
}

// Collects the plans of one shape of blocks.
class Collector {
 public:
  Collector(const ptx::Gpu& gpu, const GpuRates& rates, std::vector<GemvPlan>& plans,
            std::uint16_t sm)
      : gpu_(gpu), needed_(bytes_in_flight_needed(gpu, rates)), plans_(plans), sm_(sm) {}

  void add_partitions(GemvPlan plan) {
    ptx::BlockNeeds needs;
    needs.threads = plan.threads();
    needs.registers = registers(plan, sm_);
    needs.static_shared = plan.shared_bytes();
    fit_ = ptx::blocks_per_sm(gpu_, needs);
    if (fit_ == 0) return;
    first_ = static_cast<std::ptrdiff_t>(plans_.size());
    const std::uint64_t strips = plan.strips();
    const std::uint64_t sms = gpu_.sms;
    // One block per strip, as many per strip as fill the multiprocessors evenly, or all resident
    // blocks.
    add(plan, strips);
    const double each = static_cast<double>(plan.bytes_in_flight());
    const auto min_count = static_cast<std::uint64_t>(kMinFlight * needed_ / each);
    const auto max_count = static_cast<std::uint64_t>(kMaxFlight * needed_ / each) + 1;
    for (std::uint64_t m = std::clamp<std::uint64_t>(min_count, 1, fit_);
         m <= std::min<std::uint64_t>(max_count, fit_); ++m) {
      add(plan, sms * m);
      const std::uint64_t split = sms * m / strips;
      if (split > 1 && split * strips != sms * m) add(plan, split * strips);
    }
    if (plan.units() < sms) add(plan, plan.units());
  }

 private:
  void add(GemvPlan plan, std::uint64_t blocks) {
    if (blocks == 0 || blocks > std::min(kMaxBlocks, plan.units())) return;
    plan.blocks = static_cast<std::uint32_t>(blocks);
    plan.blocks_per_sm =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(fit_, ceil_div(blocks, gpu_.sms)));
    if (plan.workspace_bytes() > kMaxWorkspace) return;
    if (std::find(plans_.begin() + first_, plans_.end(), plan) != plans_.end()) return;
    plans_.push_back(plan);
    add_clusters(plan);
  }

  // Adjacent blocks along k that add their sums without the workspace.
  void add_clusters(GemvPlan plan) {
    if (sm_ < 90 || plan.blocks % plan.strips() != 0) return;
    const std::uint64_t split = plan.blocks / plan.strips();
    for (const std::uint32_t blocks : kClusters) {
      if (split % blocks != 0) continue;
      plan.cluster = blocks;
      plans_.push_back(plan);
    }
  }

  const ptx::Gpu& gpu_;
  double needed_;  // bytes in flight for the full read rate
  std::vector<GemvPlan>& plans_;
  std::uint16_t sm_;
  std::uint32_t fit_ = 0;
  std::ptrdiff_t first_ = 0;  // of the shape's plans
};

// The fallback plan of every problem: one warp per strip, one block per warp.
GemvPlan plainest(GemvPlan plan) {
  plan.warps_out = plan.warps_k = plan.rows = plan.unroll = 1;
  plan.blocks = static_cast<std::uint32_t>(plan.strips());
  return plan;
}

// Rows of a warp that make sense for the layout.
std::span<const std::uint32_t> rows_of(GemvLayout layout) {
  return std::span(kRows).first(layout == GemvLayout::R ? std::size(kRows) : 1);
}

void add_direct(GemvPlan plan, Collector& collector) {
  for (const Warps warps : kWarps) {
    for (const std::uint32_t rows : rows_of(plan.problem.layout)) {
      for (const std::uint32_t unroll : kUnrolls) {
        if (rows * unroll > kMaxPlannedLoads) break;
        plan.warps_out = warps.out;
        plan.warps_k = warps.k;
        plan.rows = rows;
        plan.unroll = unroll;
        collector.add_partitions(plan);
      }
    }
  }
}

void add_rings(GemvPlan plan, GemvPath path, Collector& collector) {
  plan.path = path;
  for (const Warps warps : kWarps) {
    if (warps.out * warps.k < 4) break;
    for (const std::uint32_t rows : rows_of(plan.problem.layout)) {
      for (const std::uint32_t unroll : kRingUnrolls) {
        for (const std::uint32_t stages : kRingStages) {
          plan.warps_out = warps.out;
          plan.warps_k = warps.k;
          plan.rows = rows;
          plan.unroll = unroll;
          plan.stages = stages;
          collector.add_partitions(plan);
        }
      }
    }
  }
}

// Repacked rows: loads of a few steps at a time, in registers.
void add_repacked(GemvPlan plan, Collector& collector) {
  for (const Warps warps : kWarps) {
    for (const std::uint32_t rows : rows_of(plan.problem.layout)) {
      for (const std::uint32_t unroll : kUnrolls) {
        plan.warps_out = warps.out;
        plan.warps_k = warps.k;
        plan.rows = rows;
        plan.unroll = unroll;
        if (min_registers(plan) > kMaxBlockRegisters) break;
        collector.add_partitions(plan);
      }
    }
  }
}

// Rows of blocks: one step at a time through shared memory, or a ring of them.
void add_blocks(GemvPlan plan, bool async, std::uint16_t sm, Collector& collector) {
  const BlockFormat& format = *block_format(plan.problem);
  plan.unroll = 1;
  plan.path = async ? GemvPath::Async : GemvPath::Direct;
  for (const Warps warps : kWarps) {
    for (const std::uint32_t rows : rows_of(plan.problem.layout)) {
      plan.warps_out = warps.out;
      plan.warps_k = warps.k;
      plan.rows = rows;
      if (spills(plan, format, sm)) continue;
      if (!async) {
        collector.add_partitions(plan);
        continue;
      }
      for (const std::uint32_t stages : kBlockStages) {
        plan.stages = stages;
        collector.add_partitions(plan);
      }
    }
  }
}

}  // namespace

bool can_be(const GemvPlan& plan, const ptx::Target& target) {
  try {
    check(plan, target);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<GemvPlan> candidates(const GemvProblem& problem, const ptx::Gpu& gpu,
                                 const GpuRates& rates) {
  const ptx::Target& target = ptx::target(gpu.target);
  std::vector<GemvPlan> plans;
  GemvPlan plan;
  plan.problem = problem;
  plan.load_bytes = widest_load(problem);
  plan.programmatic = target.sm >= 90;
  check(problem);
  Collector collector(gpu, rates, plans, target.sm);
  const bool can_copy = target.sm >= 80 && plan.load_bytes >= 4;
  if (block_format(problem) != nullptr) {
    if (problem.repacked) {
      add_repacked(plan, collector);
      plans.push_back(plainest(plan));
      return plans;
    }
    add_blocks(plan, false, target.sm, collector);
    if (can_copy) add_blocks(plan, true, target.sm, collector);
    plans.push_back(plainest(plan));
    return plans;
  }
  add_direct(plan, collector);
  if (target.sm >= 90) {
    if (plan.load_bytes == 16) add_rings(plan, GemvPath::Bulk, collector);
  } else if (can_copy) {
    add_rings(plan, GemvPath::Async, collector);
  }
  plans.push_back(plainest(plan));
  return plans;
}

}  // namespace ptxgen::inline v0::gemv
