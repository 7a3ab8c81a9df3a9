// src/cli/commands/launch_statistics.cpp - launches of an emulated context, by kernel
#include "cli/commands/launch_statistics.hpp"

#include <algorithm>
#include <utility>

namespace ptxgen::cli {

KernelStatistics total(const std::vector<KernelStatistics>& kernels) {
  KernelStatistics sum;
  for (const KernelStatistics& kernel : kernels) {
    sum.launches += kernel.launches;
    sum.lane_instructions += kernel.lane_instructions;
    sum.seconds += kernel.seconds;
  }
  return sum;
}

LaunchStatistics::LaunchStatistics(const Context& context, const emulator::Options& options)
    : context_(context.handle()), options_(options) {
  count_instructions(false);
  (void)driver::emulated::observe_launches(context_, &LaunchStatistics::report, this);
}

LaunchStatistics::~LaunchStatistics() {
  (void)driver::emulated::observe_launches(context_, nullptr, nullptr);
  (void)driver::emulated::set_launch_options(context_, driver::emulated::default_options());
}

void LaunchStatistics::count_instructions(bool on) {
  options_.counters = on;
  (void)driver::emulated::set_launch_options(context_, options_);
}

std::vector<KernelStatistics> LaunchStatistics::take() {
  std::vector<KernelStatistics> taken;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [name, kernel] : kernels_) taken.push_back(std::move(kernel));
    kernels_.clear();
  }
  std::ranges::stable_sort(taken, std::greater<>(), &KernelStatistics::seconds);
  return taken;
}

void LaunchStatistics::report(void* user, const driver::emulated::LaunchReport& launch) {
  auto& self = *static_cast<LaunchStatistics*>(user);
  const std::lock_guard lock(self.mutex_);
  auto found = self.kernels_.find(launch.kernel);
  if (found == self.kernels_.end()) {
    found = self.kernels_.emplace(std::string(launch.kernel), KernelStatistics{}).first;
    found->second.kernel = launch.kernel;
  }
  KernelStatistics& kernel = found->second;
  ++kernel.launches;
  kernel.lane_instructions += launch.result.counters.thread_instructions;
  kernel.seconds += launch.result.seconds;
}

}  // namespace ptxgen::cli
