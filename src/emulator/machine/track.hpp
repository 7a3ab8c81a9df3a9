// src/emulator/machine/track.hpp - which bits of registers are defined
#pragma once

#include <span>

#include "emulator/state/code.hpp"

namespace ptxgen::inline v0::emulator {

/// Runs Code::tracks[step.detail]. Step: `immediate` not 0 if the first use is the guard.
void track(Context& context, const Step& step);

/// Sets the kind of `detail`: how undefined bits propagate through a lane-wise instruction. `op`,
/// `function`, `sources` and `results` (those of the LaneFunction, without the carry) are set.
void choose_track(const ptx::Instruction& instruction, std::span<const ptx::Operand> operands,
                  TrackDetail& detail);

/// The undefined bits of the results of one lane: `values` and `undefined` by source, words as in
/// LaneFunction; `undefined` has no bits beyond a source's width.
void undefined_results(const TrackDetail& detail, const std::uint64_t* values,
                       const std::uint64_t* undefined, std::uint64_t* results);

}  // namespace ptxgen::inline v0::emulator
