// src/cli/commands/step_prompt.hpp - commands of the debugger, typed
#pragma once

#include <string>
#include <string_view>

#include "cli/commands/step_launch.hpp"
#include "ptxgen/frames/debugger.hpp"

namespace ptxgen::cli {

/// What a typed command does.
struct Prompted {
  frames::DebuggerCommand command;
  std::string message;  ///< for the user, or empty
  bool refused = false;
};

/// `step [N]`, `back [N]`, `next`, `continue`, `reverse`, `goto N`, `break LINE|barrier|finding`,
/// `watch SPEC`, `unwatch [SPEC]`, `quit`, and their first letters. Breakpoints and watches are
/// changed at once.
[[nodiscard]] Prompted run_prompt(std::string_view text, frames::Debugger& debugger,
                                  const StepLaunch& launch);

/// "line 12, barriers" or "none".
[[nodiscard]] std::string breakpoints_text(const frames::Debugger& debugger);

}  // namespace ptxgen::cli
