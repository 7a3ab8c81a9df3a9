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

/// `grid`: the fields that do not depend on the plan. `groups`: clusters, or blocks without
/// clusters. `exact`: one worker, all memory checked, no Replay.
[[nodiscard]] LaunchPlan plan_launch(const Grid& grid, std::uint32_t kernel, std::uint64_t groups,
                                     bool exact);
/// Makes later launches of the kernel avoid this replay.
void remember(const Grid& grid, std::uint32_t kernel, const Replay& replay);

}  // namespace ptxgen::inline v0::emulator
