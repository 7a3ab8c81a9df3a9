// ptxgen/check/gates.hpp - what a module must pass before it is loaded
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::gates {

/// Who wrote the code.
enum class CodeOrigin : std::uint8_t {
  Foreign,  ///< a text from anywhere: what the manual allows is at most a warning
  Built,    ///< KernelBuilder, which made the library's kernels too
};

struct GateOptions {
  std::string_view target{};  ///< check against this target instead of the module's, or empty
  std::string_view entry{};   ///< the entry that must exist, or empty
  /// Threads of a block in x, y, z where the launch is known; zeros otherwise. `.reqntid` says it
  /// too.
  std::array<std::uint32_t, 3> block{0, 0, 0};
  CodeOrigin origin = CodeOrigin::Foreign;
};

// Each gate reads the module only, and says what it found in the order of the text. Functions that
// the verifier refuses may be given; nothing is claimed about them.

/// Barriers that not all threads which they count can reach together. Rule `barrier-divergence`: an
/// error where it depends on the thread's index alone in a block of known shape, a warning where it
/// is so in some launch or cannot be shown to be safe. Rule `exited-before-barrier`: threads leave
/// the kernel before a barrier that others come to, which waits for them on GPUs before sm_70 only:
/// an error there and in code that was built, a warning otherwise.
///
/// When it reports nothing, no execution deadlocks or diverges at a barrier of the function,
/// provided that functions without a body come to none. mbarriers are not looked at.
[[nodiscard]] std::vector<Finding> barrier_safety(const ptx::Module& module,
                                                  const GateOptions& options = {});

/// Accesses to shared memory by different threads, one of them a write, that no barrier parts. Rule
/// `shared-race`: an error if two threads, named, access common bytes between the same two barriers
/// in every launch with a block of the known shape that comes to the accesses; a warning if they do
/// in some launch, named beside one that is free of it, or where that could not be excluded. Note
/// `race-same-value`: all write the same value. When it reports nothing, no launch with the block
/// that `options` or `.reqntid` give has a race, under the assumptions below. Where neither does,
/// some shapes are tried, and nothing is an error; what could not be shown and is found in less
/// than half of them is a note.
///
/// Barriers that all threads of the block come to order accesses, `bar.warp.sync` of all lanes
/// those of a warp; an arrival at the cluster's barrier with the wait right behind it is a barrier
/// of the block. A copy is done where its thread has waited for its group. What only some threads
/// wait for (named barriers, masks, mbarriers, flags) is not followed, so that kernels which rely
/// on it get warnings. Of a bulk copy from global memory it is looked at whether threads wait at
/// its mbarrier before they touch the bytes, and at some mbarrier before it overwrites what they
/// touched; that each wait is for the right phase is taken for granted, and so is that copies keep
/// off each other. Other bulk copies and instructions outside the op table are not looked at;
/// shared memory of another block of the cluster is taken for the block's own, and nothing is said
/// about what blocks do to each other. Taken for granted: addresses do not wrap around and lie in
/// the variable that they are made from, and numbers on which threads agree are below 2^31. Entries
/// only; functions that they call are taken to access anything that they may.
[[nodiscard]] std::vector<Finding> shared_race(const ptx::Module& module,
                                               const GateOptions& options = {});

/// Legal PTX that is likely a mistake. Rules `shared-64bit-address` `loop-branch-direction`
/// `missing-barrier` `stale-accumulator` `self-subtract` `unchecked-bounds`.
[[nodiscard]] std::vector<Finding> analyze(const ptx::Module& module,
                                           const GateOptions& options = {});

/// Limits of the target that the module's directives and variables must keep: threads, shared
/// bytes, registers. Rule `tile-limits`.
[[nodiscard]] std::vector<Finding> target_limits(const ptx::Module& module,
                                                 const GateOptions& options = {});

/// What costs time and need not: notes only. Rules `uncoalesced` (a global or local access that
/// moves at least twice the sectors that its bytes fill), `bank-conflict`, `register-pressure` (a
/// kernel with more values alive at once than a thread may have registers). The figures are those
/// of `analysis::memory_report` and `analysis::Liveness`; what they do not know is not reported.
[[nodiscard]] std::vector<Finding> performance_notes(const ptx::Module& module,
                                                     const GateOptions& options = {});

/// A row of the list of gates.
struct GateInfo {
  std::string_view name;
  std::string_view doc;
  std::vector<Finding> (*run)(const ptx::Module&, const GateOptions&) = nullptr;
  bool before_load = true;  ///< stands in front of every load; the others only in `check`
};
/// Verifier, gates, analyzer: in the order in which they run.
[[nodiscard]] std::span<const GateInfo> all_gates() noexcept;

/// All of them. If the verifier finds errors nothing else is run. What `shared-race` has shown is
/// not reported again as `missing-barrier`.
[[nodiscard]] std::vector<Finding> run(const ptx::Module& module, const GateOptions& options = {});

}  // namespace ptxgen::inline v0::gates
