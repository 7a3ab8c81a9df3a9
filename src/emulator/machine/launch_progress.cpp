// src/emulator/machine/launch_progress.cpp - progress and instruction budget of a launch
#include "emulator/machine/launch_progress.hpp"

#include <algorithm>

#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// Minimum charge for a block: starting and ending one costs about as much.
constexpr std::uint64_t kMinBlockInstructions = 100;
constexpr std::chrono::milliseconds kInterval{200};
/// Progress is reported at least this many times in a launch.
constexpr std::uint64_t kParts = 256;

/// The cost of `all` blocks if `done` of them cost `spent`; saturates.
std::uint64_t extrapolated(std::uint64_t spent, std::uint64_t done, std::uint64_t all) {
  const double total =
      static_cast<double>(spent) / static_cast<double>(done) * static_cast<double>(all);
  return total < 1.8e19 ? static_cast<std::uint64_t>(total) : ~std::uint64_t{0};
}

}  // namespace

LaunchProgress::LaunchProgress(const Options& options, Reporter& reporter, std::uint64_t blocks,
                               std::uint32_t group)
    : options_(options),
      reporter_(reporter),
      blocks_(blocks),
      group_(group),
      last_report_(Clock::now()) {}

void LaunchProgress::ended(std::uint64_t order, std::uint64_t instructions) {
  const std::lock_guard lock(mutex_);
  done_ += group_;
  if (options_.max_launch_instructions != 0) spend(order, instructions);
  if (options_.progress.report == nullptr) return;
  const auto now = Clock::now();
  const std::uint64_t part = blocks_ / kParts + 1;
  if (done_ >= blocks_ || done_ / part != (done_ - group_) / part ||
      now - last_report_ >= kInterval) {
    report(now);
  }
}

void LaunchProgress::running() {
  if (options_.progress.report == nullptr) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  const auto now = Clock::now();
  if (now - last_report_ >= kInterval) report(now);
}

void LaunchProgress::report(Clock::time_point now) {
  last_report_ = now;
  options_.progress.report(options_.progress.user, done_, blocks_);
}

void LaunchProgress::spend(std::uint64_t order, std::uint64_t instructions) {
  instructions = std::max(instructions, kMinBlockInstructions * group_);
  if (order != next_) {
    ahead_.emplace(order, instructions);
    return;
  }
  for (;;) {
    next_ += group_;
    spent_ += instructions;
    if (spent_ > options_.max_launch_instructions && !exceeded_ && next_ < blocks_) {
      exceeded_ = true;
      const std::uint64_t last = next_ - 1;
      reporter_.report_launch(last, Rule::InstructionBudget, [&]() -> FindingText {
        return {
            format_text("the launch was stopped after {} of {} blocks: they have executed {} warp "
                        "instructions (a block counts as at least {}), more than the budget of {} "
                        "for a launch",
                        next_, blocks_, spent_, kMinBlockInstructions,
                        options_.max_launch_instructions),
            {format_text("all blocks would need about {}", extrapolated(spent_, next_, blocks_)),
             "launch a smaller grid, or raise the budget "
             "(Options::max_launch_instructions, 0 for none)"}};
      });
      reporter_.stop_after(last);
    }
    const auto following = ahead_.find(next_);
    if (following == ahead_.end()) return;
    instructions = following->second;
    ahead_.erase(following);
  }
}

}  // namespace ptxgen::inline v0::emulator
