// src/emulator/machine/launch_plan.hpp - workers and race check of a launch
#pragma once

#include "emulator/race/race.hpp"

namespace ptxgen::inline v0::emulator {

struct LaunchPlan {
  unsigned threads = 1;
  bool races = false;  ///< in global memory
  RacePlan watch;      ///< of them
  RuleSet unchecked;   ///< of the rules that the options ask for
};

/// `grid` as far as it does not depend on the plan; `groups`: clusters, or blocks where there are
/// none. `exact`: one worker, all memory watched, no Replay.
[[nodiscard]] LaunchPlan plan_launch(const Grid& grid, std::uint32_t kernel, std::uint64_t groups,
                                     bool exact);
/// The next launches of the kernel avoid what has made this one begin anew.
void remember(const Grid& grid, std::uint32_t kernel, const Replay& replay);

}  // namespace ptxgen::inline v0::emulator
