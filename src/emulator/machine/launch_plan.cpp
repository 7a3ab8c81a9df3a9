// src/emulator/machine/launch_plan.cpp - workers and race check of a launch
#include "emulator/machine/launch_plan.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "emulator/race/store_targets.hpp"
#include "emulator/state/address_space.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

RaceMemo& memo_of(const Grid& grid, std::uint32_t kernel) {
  std::shared_ptr<RaceMemo>& memo = grid.kernel_image->race_memo;
  if (!memo) {
    memo = std::make_shared<RaceMemo>();
    memo->targets = predict_stores(*grid.image, kernel);
  }
  return *memo;
}

/// The allocations that the predicted writes of the kernel begin in.
std::vector<Device::Extent> watched(const Grid& grid, const StoreTargets& targets) {
  std::vector<Device::Extent> extents;
  const auto add = [&](std::uint64_t address) {
    const Allocation* const found = grid.space->find(address);
    if (found == nullptr || found->freed || found->kind == AllocationKind::Constant) return;
    if (std::ranges::find(extents, found->start, &Device::Extent::start) == extents.end()) {
      extents.push_back({found->start, found->bytes});
    }
  };
  for (std::uint64_t offset = 0; offset + 8 <= grid.parameters.size(); offset += 8) {
    const std::uint64_t word = offset / 8;
    const std::uint64_t bit = word < 59 ? std::uint64_t{1} << word : StoreTargets::kLaterWords;
    if ((targets.origins & bit) == 0) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, grid.parameters.data() + offset, sizeof value);
    add(value);
  }
  if ((targets.origins & StoreTargets::kVariables) != 0) {
    for (const std::uint64_t address : grid.image->allocations) add(address);
  }
  if (grid.grid_workspace != 0) add(grid.grid_workspace);
  return extents;
}

}  // namespace

LaunchPlan plan_launch(const Grid& grid, std::uint32_t kernel, std::uint64_t groups, bool exact) {
  const Options& options = grid.options;
  LaunchPlan plan;
  // If the result depends on the order of blocks, they run one after another in the seed's order.
  const bool order_matters = grid.kernel_image->order_dependent;
  unsigned threads = options.threads != 0 ? options.threads : std::thread::hardware_concurrency();
  threads = static_cast<unsigned>(std::min<std::uint64_t>(std::max(1u, threads), groups));
  plan.threads = order_matters && !options.parallel ? 1 : threads;
  plan.races = options.checks.has(Rule::GlobalRace) || options.checks.has(Rule::ScopeTooNarrow);
  if (!plan.races) return plan;
  if (order_matters && plan.threads > 1) {
    // The check needs synchronising blocks in one order.
    plan.races = false;
    for (const Rule rule : {Rule::GlobalRace, Rule::ScopeTooNarrow}) {
      if (options.checks.has(rule)) plan.unchecked.add(rule);
    }
    return plan;
  }
  const RaceMemo& memo = memo_of(grid, kernel);
  // The effects of malloc and free cannot be undone.
  if (exact || memo.raced || memo.targets.heap) {
    plan.threads = 1;
    return plan;
  }
  plan.watch.workers = plan.threads;
  if (!memo.unwatched && (memo.targets.origins & StoreTargets::kLoaded) == 0) {
    plan.watch.all = false;
    plan.watch.watched = watched(grid, memo.targets);
  }
  return plan;
}

void remember(const Grid& grid, std::uint32_t kernel, const Replay& replay) {
  RaceMemo& memo = memo_of(grid, kernel);
  (replay.unwatched ? memo.unwatched : memo.raced) = true;
}

}  // namespace ptxgen::inline v0::emulator
