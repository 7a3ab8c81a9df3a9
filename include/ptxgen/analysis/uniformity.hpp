// ptxgen/analysis/uniformity.hpp - uniform values and branches
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/analysis/cfg.hpp"
#include "ptxgen/analysis/registers.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::analysis {

/// The threads among which a value is uniform; each level implies those before it.
enum class Agreement : std::uint8_t {
  None,   ///< lanes of a warp may differ
  Warp,   ///< the lanes of a warp agree
  Block,  ///< the threads of a block (CTA) agree
  Grid,   ///< all threads agree
};

[[nodiscard]] std::string_view to_string(Agreement agreement) noexcept;

struct UniformityOptions {
  /// Threads of a block in x, y, z; zeros if unknown (then `.reqntid` is used).
  std::array<std::uint32_t, 3> block{0, 0, 0};
};

/// Uniformity of registers among the threads that execute a statement together, and the branches
/// that may diverge. Conservative: may report less agreement than there is, never more.
///
/// Execution model: of the diverged groups of a warp the lowest in `Cfg::order()` runs first, and
/// groups at the same statement reconverge. Under another schedule the results hold only for blocks
/// that are not `may_be_split`.
///
/// A value is as uniform as its sources. It is also uniform in a warp if the bits in which lanes
/// differ are shifted or masked out or do not affect a comparison: `%tid.x / 32` and `%tid.x < 64`
/// if the block shape is known, `%laneid & -32`. A value written between divergence and
/// reconvergence is not uniform afterwards, nor is a value written in a loop that threads leave in
/// different iterations. A register has the weakest agreement of all its writes. Not uniform:
///   - %tid, %laneid, %lanemask_*, %smid, clocks and counters; %tid.y, %tid.z unless the block
///   shape
///     makes them uniform; %ctaid, %clusterid between blocks; addresses of shared memory
///     between blocks; addresses of local memory;
///   - results of atomics, shuffles, activemask, elect, match.any, matrix instructions, calls;
///   - loads that are volatile, ordered, or from local or unknown memory. Loads of kernel
///     parameters and constants are as uniform as their addresses. Other loads are uniform in a
///     warp at most, if the address is and lanes cannot have diverged before (`may_be_split`);
///   - votes, reductions and match.all are uniform in a warp under the same condition; bar.red in a
///     block if the block executes it together;
///   - parameters of a device function and everything read from them;
///   - a register that is never written.
///
/// Keeps no reference to its arguments. Near-linear for structured code. Beyond a work limit
/// (hostile graphs), and with instructions outside the op table, everything is None.
class Uniformity {
 public:
  Uniformity() = default;
  Uniformity(const ptx::Module& module, const ptx::Function& function, const Cfg& cfg,
             const RegisterIndex& index, const UniformityOptions& options = {});

  /// By number in the RegisterIndex.
  [[nodiscard]] Agreement of(std::uint32_t reg) const noexcept { return registers_[reg]; }
  /// Whether diverged threads may see different writes of the register.
  [[nodiscard]] bool chosen_by_thread(std::uint32_t reg) const noexcept { return chosen_[reg]; }

  /// The agreement of the branch that ends a block; Grid without a branch. Below Warp it may
  /// diverge.
  [[nodiscard]] Agreement of_branch(std::uint32_t block) const noexcept { return branches_[block]; }

  /// The agreement of threads on whether the block executes: the weakest of the branches on which
  /// it is control dependent (Cfg::deciders), early returns included. Warp means that all lanes of
  /// a warp execute it or none does.
  [[nodiscard]] Agreement of_control(std::uint32_t block) const noexcept { return control_[block]; }

  /// Whether diverged lanes may have reconverged before the block (under independent thread
  /// scheduling they may then execute it at different times). Always true in a device function, and
  /// in code that can execute after or beside a call.
  [[nodiscard]] bool may_be_split(std::uint32_t block) const noexcept { return split_[block]; }

  /// The analysis gave up: everything is None.
  [[nodiscard]] bool gave_up() const noexcept { return gave_up_; }

 private:
  friend class UniformitySolver;
  std::vector<Agreement> registers_, branches_, control_;
  std::vector<bool> chosen_, split_;
  bool gave_up_ = false;
};

/// The agreement of an operand's value (for Memory: of its address).
[[nodiscard]] Agreement agreement(const ptx::Module& module, const ptx::Function& function,
                                  const RegisterIndex& index, const Uniformity& uniformity,
                                  const ptx::Operand& operand,
                                  const UniformityOptions& options = {});

/// A block barrier that some of the threads it waits for may not reach.
struct DivergentBarrier {
  std::uint32_t statement = 0;
  Agreement agreement = Agreement::None;  ///< of the threads that reach it
  /// The divergent branches on which it depends, by statement; and the barrier itself if its guard
  /// is divergent.
  std::vector<std::uint32_t> deciders;
};

/// `bar` and `barrier` (not bar.warp.sync) under control flow that is not uniform in the block, or,
/// if they name a number of threads, in the warp. They may be harmless. If none is found, all
/// threads that entered the function reach each barrier together.
[[nodiscard]] std::vector<DivergentBarrier> divergent_barriers(const ptx::Function& function,
                                                               const Cfg& cfg,
                                                               const RegisterIndex& index,
                                                               const Uniformity& uniformity);

/// Registers by agreement, and one line per branch that is not Grid.
[[nodiscard]] std::string to_text(const Uniformity& uniformity, const Cfg& cfg,
                                  const RegisterIndex& index, const ptx::Module& module,
                                  const ptx::Function& function);

}  // namespace ptxgen::inline v0::analysis
