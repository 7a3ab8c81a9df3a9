// src/runtime/recording/program_replay.hpp - a recorded program, run again step by step
#pragma once

#include "ptxgen/runtime/recording/recording.hpp"

namespace ptxgen::inline v0 {

/// `replay` of a recording of a program.
[[nodiscard]] Replay replay_program(const Context& context, const Recording& recording,
                                    const ReplayOptions& options);
/// `to_text` of a difference in one.
[[nodiscard]] std::string program_text_of(const Divergence& divergence);

}  // namespace ptxgen::inline v0
