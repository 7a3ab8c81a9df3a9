// src/emulator/machine/warp.hpp - a warp's lanes along their paths, and where they wait
#pragma once

#include "emulator/machine/machine.hpp"

namespace ptxgen::inline v0::emulator {

/// Why a warp stopped running.
enum class WarpStop : std::uint8_t {
  Waits,   ///< none of its lanes can go on by itself
  Yields,  ///< its turn is over
  Spins,   ///< it looks again and again at what others write
  Done,    ///< all its lanes have left the kernel, or its block was killed
};

/// Runs a warp for about `quantum` segments.
[[nodiscard]] WarpStop run_warp(Warp& warp, std::uint64_t quantum);

/// The lanes of a warp as they enter the kernel.
void start_warp(Warp& warp);

/// A context for reports and handlers on behalf of a split.
[[nodiscard]] Context context_of(Warp& warp, Split& split);

/// Lanes leave the kernel: out of every activation they are in. The split keeps the others.
void exit_lanes(Warp& warp, Split& split, std::uint32_t lanes, std::uint32_t statement);
/// Ends a block after a fault; the launch ends behind its cluster in launch order.
void kill(Cta& cta);

// barrier.cpp

/// The split has come to a barrier with all its lanes. It waits, or goes on to the next segment.
void reach_barrier(Warp& warp, std::size_t split);
/// A split of a diverged warp runs its segment: see Warp::passed_barrier.
void note_follower(Warp& warp, const Split& split);
/// Looks again at barriers that wait for all threads, after lanes have left the kernel.
void recheck_barriers(Cta& cta);
/// No warp of the block can go on: lets somebody go on who waits for lanes that never come, and
/// says so. False if there is nobody of that kind.
bool force_somebody(Cta& cta);
/// Reports barriers for which too few threads are left.
void report_too_few(Cta& cta);
/// "warp 0, 32 threads from thread (0,0,0) on, at line 7: barrier 0, 32 of 64 threads are there".
[[nodiscard]] std::string describe_wait(const Split& split, const Warp& warp);
/// A warp whose lanes have all come to aligned barriers, but not together. False if it is not so.
bool resolve_parted_barrier(Warp& warp);

// calls.cpp

/// Lanes enter a device function. False if the stack overflows; the block is dead then.
bool enter_function(Warp& warp, Split& split, const Code& callee);
/// Lanes return from one; true if the split goes on in the caller.
void leave_function(Warp& warp, Split& split);
/// vprintf, malloc...; false if the block was killed.
bool call_system(Context& context, std::uint32_t statement, const ControlDetail& detail);
[[nodiscard]] Frame* acquire_frame(Warp& warp, const Code& code, std::uint32_t local_base);

}  // namespace ptxgen::inline v0::emulator
