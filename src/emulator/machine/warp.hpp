// src/emulator/machine/warp.hpp - a warp's lanes along their paths, and where they wait
#pragma once

#include "emulator/state/machine.hpp"

namespace ptxgen::inline v0::emulator {

/// Why a warp stopped running.
enum class WarpStop : std::uint8_t {
  Blocked,  ///< no lane can proceed by itself
  Yields,   ///< its quantum is used up
  Spins,    ///< it polls memory in a loop
  Done,     ///< all its lanes have exited, or its block was killed
};

/// Runs a warp for about `quantum` segments.
[[nodiscard]] WarpStop run_warp(Warp& warp, std::uint64_t quantum);

/// Grid::run_steps of a launch without an observer.
[[nodiscard]] const Step* run_steps(Context& context, const Step* step);

/// Prepares a warp to enter the kernel.
void start_warp(Warp& warp);

/// A context for reports and handlers on behalf of a split.
[[nodiscard]] Context context_of(Warp& warp, Split& split);

/// Lanes exit from all their activations. The caller removes them from the split.
void exit_lanes(Warp& warp, Split& split, std::uint32_t lanes, std::uint32_t statement);
/// Ends a block after a fault; in launch order the launch ends after its cluster.
void kill(Cta& cta);

/// The control step that a split has reached: its detail and its statement.
[[nodiscard]] inline const ControlDetail& detail_of(const Split& split) {
  const Code& code = *split.frame->code;
  return code.controls[code.segments[split.segment].detail];
}
[[nodiscard]] inline std::uint32_t statement_of(const Split& split) {
  const Code& code = *split.frame->code;
  return code.steps[code.segments[split.segment].control].statement;
}
/// The lowest lane of a mask; 31 for none.
[[nodiscard]] inline unsigned first_lane(std::uint32_t lanes) {
  return static_cast<unsigned>(std::countr_zero(lanes | 0x80000000u));
}

// barrier.cpp

/// The split executes a barrier with all its lanes: it waits, or continues with the next segment.
void reach_barrier(Warp& warp, std::size_t split);
/// Updates Warp::passed_barrier before a split of a diverged warp runs its segment.
void note_passed_barrier(Warp& warp, const Split& split);
/// Rechecks barriers that expect all threads, after lanes have exited.
void recheck_barriers(Cta& cta);
/// No warp of the block can proceed: reports and releases a split that waits for lanes that never
/// arrive. False if there is none.
bool release_stuck_split(Cta& cta);
/// Reports barriers that too few remaining threads can complete.
void report_too_few(Cta& cta);
/// "warp 0, 32 threads from thread (0,0,0) on, at line 7: barrier 0, 32 of 64 threads have
/// arrived".
[[nodiscard]] std::string describe_wait(const Split& split, const Warp& warp);
/// Handles a warp all of whose splits wait at aligned barriers, but not together. False for other
/// warps.
bool resolve_divergent_barrier(Warp& warp);

// calls.cpp

/// Lanes enter a device function. False if the stack overflows, which kills the block.
bool enter_function(Warp& warp, Split& split, const Code& callee);
/// Lanes return to their caller.
void leave_function(Warp& warp, Split& split);
/// vprintf, malloc...; false if the block was killed.
bool call_system(Context& context, std::uint32_t statement, const ControlDetail& detail);
[[nodiscard]] Frame* acquire_frame(Warp& warp, const Code& code, std::uint32_t local_base);

}  // namespace ptxgen::inline v0::emulator
