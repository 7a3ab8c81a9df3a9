// ptxgen/check/gates.hpp - checks of a module before it is loaded
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/support/hidden.hpp"

namespace ptxgen::inline v0::gates {

/// The origin of the code.
enum class CodeOrigin : std::uint8_t {
  Foreign,  ///< PTX text: whatever the manual allows is at most a warning
  Built,    ///< KernelBuilder, the library's kernels included
};

struct GateOptions {
  std::string_view target{};  ///< check against this target instead of the module's, or empty
  std::string_view entry{};   ///< the entry that must exist, or empty
  /// Threads of a block in x, y, z if the launch is known, otherwise zeros. `.reqntid` gives them
  /// too.
  std::array<std::uint32_t, 3> block{0, 0, 0};
  CodeOrigin origin = CodeOrigin::Foreign;
};

// Each gate only reads the module and returns its findings in the order of the text. It accepts
// functions that the verifier refuses, without any promise about the findings.

/// Barriers that not all threads that they count can reach together. Rule `barrier-divergence`: an
/// error if it depends on the thread's index alone in a block of known shape; a warning if it
/// happens in some launch or the barrier cannot be shown to be safe. Rule `exited-before-barrier`:
/// threads leave the kernel before a barrier that others reach, which waits for them only on GPUs
/// before sm_70: an error there and in built code, a warning otherwise.
///
/// When it reports nothing, no execution deadlocks or diverges at a barrier of the function,
/// provided that functions without a body reach no barrier. mbarriers are not checked.
[[nodiscard]] std::vector<Finding> barrier_safety(const ptx::Module& module,
                                                  const GateOptions& options = {});

/// Accesses to shared memory by different threads, one of them a write, that no barrier separates.
/// Rule `shared-race`: an error if two threads, named, access common bytes between the same two
/// barriers in every launch with a block of the known shape that reaches the accesses; a warning if
/// they do in some launch, named with one that does not race, or if a race was not excluded. Note
/// `race-same-value`: all threads write the same value. When it reports nothing, no launch with the
/// block that `options` or `.reqntid` give has a race, under the assumptions below. If neither
/// gives a block, several shapes are tried and nothing is an error; a race that is not proved and
/// found in at most half of them is a note.
///
/// Barriers that all threads of the block reach order accesses; `bar.warp.sync` of all lanes orders
/// those of a warp; an arrival at the cluster's barrier with the wait directly after it is a
/// barrier of the block. A copy is complete after its thread has waited for its group.
/// Synchronization of some threads (named barriers, masks, mbarriers, flags) is not modelled, so
/// kernels that rely on it get warnings. For a bulk copy from global memory the gate checks that
/// threads wait at its mbarrier before they access the bytes, and at some mbarrier before the copy
/// overwrites bytes that they accessed. It assumes that each wait is for the right phase and that
/// copies do not overlap. Other bulk copies and instructions outside the op table are not checked;
/// shared memory of another block of the cluster is treated as the block's own, and races between
/// blocks are not reported. It assumes that addresses do not wrap around and are within the
/// variable that they are derived from, and that values on which threads agree are below 2^31.
/// Entries only; a called function is assumed to access anything that it may.
[[nodiscard]] std::vector<Finding> shared_race(const ptx::Module& module,
                                               const GateOptions& options = {});

/// Legal PTX that is likely a mistake. Rules `shared-64bit-address` `loop-branch-direction`
/// `missing-barrier` `stale-accumulator` `self-subtract` `unchecked-bounds` `unmasked-padding`.
[[nodiscard]] std::vector<Finding> analyze(const ptx::Module& module,
                                           const GateOptions& options = {});

/// Directives and variables beyond the limits of the target: threads, shared bytes, registers. Rule
/// `tile-limits`.
[[nodiscard]] std::vector<Finding> target_limits(const ptx::Module& module,
                                                 const GateOptions& options = {});

/// Registers of wgmma.mma_async. Rule `warpgroup-order`: an accumulator or a fragment of a is
/// accessed while no wgmma.wait_group has waited for the group of the wgmma, or by an ordinary
/// instruction without a wgmma.fence before the next wgmma that has it; the first wgmma has no
/// fence before it. An error if it happens on every path to the statement, a warning if on some.
/// When it reports nothing, no execution does that, provided that no two registers overlap and
/// functions that are called access none of them.
[[nodiscard]] std::vector<Finding> warpgroup_order(const ptx::Module& module,
                                                   const GateOptions& options = {});

/// Avoidable costs, as notes. Rules `uncoalesced` (a global or local access that moves at least
/// twice the sectors that its bytes fill), `bank-conflict`, `register-pressure` (a kernel with more
/// values alive at once than a thread may have registers). The figures come from
/// `analysis::memory_report` and `analysis::Liveness`; unknown figures are not reported.
[[nodiscard]] std::vector<Finding> performance_notes(const ptx::Module& module,
                                                     const GateOptions& options = {});

class ModuleFacts;

/// One gate.
struct GateInfo {
  std::string_view name;
  std::string_view doc;
  std::vector<Finding> (*run)(const ptx::Module&, const GateOptions&) = nullptr;
  /// The same with the analyses of a `GateRun`.
  std::vector<Finding> (*run_with)(ModuleFacts&) = nullptr;
  bool before_load = true;  ///< runs before every load; the others only in `check`
};
/// Verifier, gates and analyzer, in the order in which they run.
[[nodiscard]] std::span<const GateInfo> all_gates() noexcept;

/// Runs gates on one module; an analysis that several of them need is made once. Refers to the
/// module, which must not change, and to the texts of the options.
class GateRun {
 public:
  explicit GateRun(const ptx::Module& module, const GateOptions& options = {});

  [[nodiscard]] std::vector<Finding> run(const GateInfo& gate) { return gate.run_with(*facts_); }

 private:
  Hidden<ModuleFacts> facts_;
};

/// Runs all of them, or only the verifier if that finds errors. A race that `shared-race` proves is
/// not reported again as `missing-barrier`.
[[nodiscard]] std::vector<Finding> run(const ptx::Module& module, const GateOptions& options = {});

}  // namespace ptxgen::inline v0::gates
